"""Broker configs of TLS."""

from ottla.metadata.configs.declare import ConfigValues, boolean, java_class, listing, password, string
from ottla.metadata.configs.kinds import LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, OneOf


class BrokerTlsConfigs(ConfigValues):
    """Broker configs of TLS."""

    ssl_allow_dn_changes = boolean(
        "ssl.allow.dn.changes", False, importance=LOW, update=READ_ONLY, doc="TLS: allow dn changes."
    )
    ssl_allow_san_changes = boolean(
        "ssl.allow.san.changes", False, importance=LOW, update=READ_ONLY, doc="TLS: allow san changes."
    )
    ssl_cipher_suites = listing(
        "ssl.cipher.suites", (), DistinctList(), update=PER_BROKER, doc="TLS: cipher suites."
    )
    ssl_client_auth = string(
        "ssl.client.auth",
        "none",
        OneOf(("required", "requested", "none")),
        update=PER_BROKER,
        doc="TLS: client auth.",
    )
    ssl_enabled_protocols = listing(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        DistinctList(),
        update=PER_BROKER,
        doc="TLS: enabled protocols.",
    )
    ssl_endpoint_identification_algorithm = string(
        "ssl.endpoint.identification.algorithm",
        "https",
        importance=LOW,
        update=PER_BROKER,
        doc="TLS: endpoint identification algorithm.",
    )
    ssl_engine_factory_class = java_class(
        "ssl.engine.factory.class", None, importance=LOW, update=PER_BROKER, doc="TLS: engine factory class."
    )
    ssl_key_password = password("ssl.key.password", update=PER_BROKER, doc="TLS: key password.")
    ssl_keymanager_algorithm = string(
        "ssl.keymanager.algorithm", "SunX509", update=PER_BROKER, doc="TLS: keymanager algorithm."
    )
    ssl_keystore_certificate_chain = password(
        "ssl.keystore.certificate.chain", update=PER_BROKER, doc="TLS: keystore certificate chain."
    )
    ssl_keystore_key = password("ssl.keystore.key", update=PER_BROKER, doc="TLS: keystore key.")
    ssl_keystore_location = string(
        "ssl.keystore.location", None, update=PER_BROKER, doc="TLS: keystore location."
    )
    ssl_keystore_password = password(
        "ssl.keystore.password", update=PER_BROKER, doc="TLS: keystore password."
    )
    ssl_keystore_type = string("ssl.keystore.type", "JKS", update=PER_BROKER, doc="TLS: keystore type.")
    ssl_principal_mapping_rules = string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        importance=LOW,
        update=READ_ONLY,
        doc="TLS: principal mapping rules.",
    )
    ssl_protocol = string("ssl.protocol", "TLSv1.3", update=PER_BROKER, doc="TLS: protocol.")
    ssl_provider = string("ssl.provider", None, update=PER_BROKER, doc="TLS: provider.")
    ssl_secure_random_implementation = string(
        "ssl.secure.random.implementation",
        None,
        importance=LOW,
        update=PER_BROKER,
        doc="TLS: secure random implementation.",
    )
    ssl_trustmanager_algorithm = string(
        "ssl.trustmanager.algorithm", "PKIX", update=PER_BROKER, doc="TLS: trustmanager algorithm."
    )
    ssl_truststore_certificates = password(
        "ssl.truststore.certificates", update=PER_BROKER, doc="TLS: truststore certificates."
    )
    ssl_truststore_location = string(
        "ssl.truststore.location", None, update=PER_BROKER, doc="TLS: truststore location."
    )
    ssl_truststore_password = password(
        "ssl.truststore.password", update=PER_BROKER, doc="TLS: truststore password."
    )
    ssl_truststore_type = string("ssl.truststore.type", "JKS", update=PER_BROKER, doc="TLS: truststore type.")
