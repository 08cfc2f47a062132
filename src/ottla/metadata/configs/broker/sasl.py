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
        doc="How long a connection stays open after a failed login, which slows down guessing.",
    )
    connections_max_reauth_ms = long(
        "connections.max.reauth.ms",
        0,
        update=READ_ONLY,
        doc="How long a SASL login is valid before the client must log in again; 0 means forever.",
    )
    sasl_client_callback_handler_class = java_class(
        "sasl.client.callback.handler.class",
        None,
        update=READ_ONLY,
        inert=True,
        doc="Java class that supplies credentials for this node's own connections.",
    )
    sasl_enabled_mechanisms = listing(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        DistinctList(),
        update=PER_BROKER,
        doc="The enabled SASL mechanisms.",
    )
    sasl_jaas_config = password(
        "sasl.jaas.config",
        update=PER_BROKER,
        doc="Credentials and options of a mechanism in JAAS form, best set for one listener and mechanism.",
    )
    sasl_kerberos_kinit_cmd = string(
        "sasl.kerberos.kinit.cmd",
        "/usr/bin/kinit",
        update=PER_BROKER,
        inert=True,
        doc="Path of Kerberos's kinit.",
    )
    sasl_kerberos_min_time_before_relogin = long(
        "sasl.kerberos.min.time.before.relogin",
        60_000,
        update=PER_BROKER,
        inert=True,
        doc="Shortest time between two renewals of a Kerberos ticket.",
    )
    sasl_kerberos_principal_to_local_rules = listing(
        "sasl.kerberos.principal.to.local.rules",
        ("DEFAULT",),
        DistinctList(),
        update=PER_BROKER,
        inert=True,
        doc="Rules that turn a Kerberos principal into a short name.",
    )
    sasl_kerberos_service_name = string(
        "sasl.kerberos.service.name",
        None,
        update=PER_BROKER,
        inert=True,
        doc="The Kerberos principal that brokers run as.",
    )
    sasl_kerberos_ticket_renew_jitter = double(
        "sasl.kerberos.ticket.renew.jitter",
        0.05,
        update=PER_BROKER,
        inert=True,
        doc="The random part of the renewal time, as a fraction.",
    )
    sasl_kerberos_ticket_renew_window_factor = double(
        "sasl.kerberos.ticket.renew.window.factor",
        0.8,
        update=PER_BROKER,
        inert=True,
        doc="The fraction of its lifetime after which a Kerberos ticket is renewed.",
    )
    sasl_login_callback_handler_class = java_class(
        "sasl.login.callback.handler.class",
        None,
        update=READ_ONLY,
        inert=True,
        doc="Java class that supplies credentials for a login.",
    )
    sasl_login_class = java_class(
        "sasl.login.class", None, update=READ_ONLY, inert=True, doc="Java class that does a login."
    )
    sasl_login_connect_timeout_ms = integer(
        "sasl.login.connect.timeout.ms",
        None,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="How long to wait for a connection to the token provider.",
    )
    sasl_login_read_timeout_ms = integer(
        "sasl.login.read.timeout.ms",
        None,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="How long to wait for a response of the token provider.",
    )
    sasl_login_refresh_buffer_seconds = short(
        "sasl.login.refresh.buffer.seconds",
        300,
        update=PER_BROKER,
        inert=True,
        doc="A token is renewed at least this long before it expires.",
    )
    sasl_login_refresh_min_period_seconds = short(
        "sasl.login.refresh.min.period.seconds",
        60,
        update=PER_BROKER,
        inert=True,
        doc="Shortest time between two renewals of a token.",
    )
    sasl_login_refresh_window_factor = double(
        "sasl.login.refresh.window.factor",
        0.8,
        update=PER_BROKER,
        inert=True,
        doc="The fraction of its lifetime after which a token is renewed.",
    )
    sasl_login_refresh_window_jitter = double(
        "sasl.login.refresh.window.jitter",
        0.05,
        update=PER_BROKER,
        inert=True,
        doc="The random part of that time, as a fraction of the lifetime.",
    )
    sasl_login_retry_backoff_max_ms = long(
        "sasl.login.retry.backoff.max.ms",
        10_000,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Longest pause between attempts to get a token.",
    )
    sasl_login_retry_backoff_ms = long(
        "sasl.login.retry.backoff.ms",
        100,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="First pause between attempts to get a token.",
    )
    sasl_mechanism_controller_protocol = string(
        "sasl.mechanism.controller.protocol",
        "GSSAPI",
        importance=HIGH,
        update=READ_ONLY,
        doc="The SASL mechanism this node uses towards controllers.",
    )
    sasl_mechanism_inter_broker_protocol = string(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        update=PER_BROKER,
        doc="The SASL mechanism this node uses towards other brokers.",
    )
    sasl_server_callback_handler_class = java_class(
        "sasl.server.callback.handler.class",
        None,
        update=READ_ONLY,
        doc="Java class that checks the credentials of clients.",
    )
    sasl_server_max_receive_size = integer(
        "sasl.server.max.receive.size",
        524_288,
        update=READ_ONLY,
        doc="The largest message that is read from a client during its login.",
    )
