"""Broker configs of SASL authentication."""

from ottla.metadata.configs.declare import (
    ConfigValues,
    double,
    integer,
    java_class,
    listing,
    long,
    password,
    short,
    string,
)
from ottla.metadata.configs.kinds import HIGH, LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, Range


class BrokerSaslConfigs(ConfigValues):
    """Broker configs of SASL authentication."""

    connection_failed_authentication_delay_ms = integer(
        "connection.failed.authentication.delay.ms",
        100,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        doc="Delay before closing after failed login.",
    )
    connections_max_reauth_ms = long(
        "connections.max.reauth.ms",
        0,
        update=READ_ONLY,
        doc="Force SASL re-authentication after this; 0 off.",
    )
    sasl_client_callback_handler_class = java_class(
        "sasl.client.callback.handler.class",
        None,
        update=READ_ONLY,
        doc="SASL plugin: client callback handler class.",
    )
    sasl_enabled_mechanisms = listing(
        "sasl.enabled.mechanisms", ("GSSAPI",), DistinctList(), update=PER_BROKER, doc="Mechanisms offered."
    )
    sasl_jaas_config = password(
        "sasl.jaas.config", update=PER_BROKER, doc="Login module text per listener/mechanism."
    )
    sasl_kerberos_kinit_cmd = string(
        "sasl.kerberos.kinit.cmd", "/usr/bin/kinit", update=PER_BROKER, doc="Kerberos: kinit cmd."
    )
    sasl_kerberos_min_time_before_relogin = long(
        "sasl.kerberos.min.time.before.relogin",
        60_000,
        update=PER_BROKER,
        doc="Kerberos: min time before relogin.",
    )
    sasl_kerberos_principal_to_local_rules = listing(
        "sasl.kerberos.principal.to.local.rules",
        ("DEFAULT",),
        DistinctList(),
        update=PER_BROKER,
        doc="Kerberos: principal to local rules.",
    )
    sasl_kerberos_service_name = string(
        "sasl.kerberos.service.name", None, update=PER_BROKER, doc="Kerberos: service name."
    )
    sasl_kerberos_ticket_renew_jitter = double(
        "sasl.kerberos.ticket.renew.jitter", 0.05, update=PER_BROKER, doc="Kerberos: ticket renew jitter."
    )
    sasl_kerberos_ticket_renew_window_factor = double(
        "sasl.kerberos.ticket.renew.window.factor",
        0.8,
        update=PER_BROKER,
        doc="Kerberos: ticket renew window factor.",
    )
    sasl_login_callback_handler_class = java_class(
        "sasl.login.callback.handler.class",
        None,
        update=READ_ONLY,
        doc="Client side login: callback handler class.",
    )
    sasl_login_class = java_class("sasl.login.class", None, update=READ_ONLY, doc="Client side login: class.")
    sasl_login_connect_timeout_ms = integer(
        "sasl.login.connect.timeout.ms",
        None,
        importance=LOW,
        update=READ_ONLY,
        doc="Client side login: connect timeout ms.",
    )
    sasl_login_read_timeout_ms = integer(
        "sasl.login.read.timeout.ms",
        None,
        importance=LOW,
        update=READ_ONLY,
        doc="Client side login: read timeout ms.",
    )
    sasl_login_refresh_buffer_seconds = short(
        "sasl.login.refresh.buffer.seconds",
        300,
        update=PER_BROKER,
        doc="Client side login: refresh buffer seconds.",
    )
    sasl_login_refresh_min_period_seconds = short(
        "sasl.login.refresh.min.period.seconds",
        60,
        update=PER_BROKER,
        doc="Client side login: refresh min period seconds.",
    )
    sasl_login_refresh_window_factor = double(
        "sasl.login.refresh.window.factor",
        0.8,
        update=PER_BROKER,
        doc="Client side login: refresh window factor.",
    )
    sasl_login_refresh_window_jitter = double(
        "sasl.login.refresh.window.jitter",
        0.05,
        update=PER_BROKER,
        doc="Client side login: refresh window jitter.",
    )
    sasl_login_retry_backoff_max_ms = long(
        "sasl.login.retry.backoff.max.ms",
        10_000,
        importance=LOW,
        update=READ_ONLY,
        doc="Client side login: retry backoff max ms.",
    )
    sasl_login_retry_backoff_ms = long(
        "sasl.login.retry.backoff.ms",
        100,
        importance=LOW,
        update=READ_ONLY,
        doc="Client side login: retry backoff ms.",
    )
    sasl_mechanism_controller_protocol = string(
        "sasl.mechanism.controller.protocol",
        "GSSAPI",
        importance=HIGH,
        update=READ_ONLY,
        doc="Mechanism towards controllers.",
    )
    sasl_mechanism_inter_broker_protocol = string(
        "sasl.mechanism.inter.broker.protocol", "GSSAPI", update=PER_BROKER, doc="Mechanism between brokers."
    )
    sasl_server_callback_handler_class = java_class(
        "sasl.server.callback.handler.class",
        None,
        update=READ_ONLY,
        doc="SASL plugin: server callback handler class.",
    )
    sasl_server_max_receive_size = integer(
        "sasl.server.max.receive.size", 524_288, update=READ_ONLY, doc="Largest SASL token."
    )
