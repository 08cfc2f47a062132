"""Broker configs of TLS."""

from ottla.metadata.configs.declare import ConfigValues, boolean, java_class, listing, password, string
from ottla.metadata.configs.kinds import LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, OneOf


class BrokerTlsConfigs(ConfigValues):
    """Broker configs of TLS."""

    ssl_allow_dn_changes = boolean(
        "ssl.allow.dn.changes",
        False,
        importance=LOW,
        update=READ_ONLY,
        doc="Whether a new certificate may have another distinguished name than the one it replaces.",
    )
    ssl_allow_san_changes = boolean(
        "ssl.allow.san.changes",
        False,
        importance=LOW,
        update=READ_ONLY,
        doc="Whether a new certificate may have fewer alternative names than the one it replaces.",
    )
    ssl_cipher_suites = listing(
        "ssl.cipher.suites",
        (),
        DistinctList(),
        update=PER_BROKER,
        doc="The enabled cipher suites; empty means the default ones.",
    )
    ssl_client_auth = string(
        "ssl.client.auth",
        "none",
        OneOf(("required", "requested", "none")),
        update=PER_BROKER,
        doc="Whether a client certificate is required, requested, or not used (none).",
    )
    ssl_enabled_protocols = listing(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        DistinctList(),
        update=PER_BROKER,
        doc="The enabled TLS versions.",
    )
    ssl_endpoint_identification_algorithm = string(
        "ssl.endpoint.identification.algorithm",
        "https",
        importance=LOW,
        update=PER_BROKER,
        doc="How the host name of a server is checked against its certificate; empty means not at all.",
    )
    ssl_engine_factory_class = java_class(
        "ssl.engine.factory.class",
        None,
        importance=LOW,
        update=PER_BROKER,
        inert=True,
        doc="Java class that creates TLS engines.",
    )
    ssl_key_password = password("ssl.key.password", update=PER_BROKER, doc="Password of the private key.")
    ssl_keymanager_algorithm = string(
        "ssl.keymanager.algorithm",
        "SunX509",
        update=PER_BROKER,
        inert=True,
        doc="The Java key manager algorithm.",
    )
    ssl_keystore_certificate_chain = password(
        "ssl.keystore.certificate.chain",
        update=PER_BROKER,
        doc="The certificate chain of this node, as PEM text.",
    )
    ssl_keystore_key = password(
        "ssl.keystore.key", update=PER_BROKER, doc="The private key of this node, as PEM text."
    )
    ssl_keystore_location = string(
        "ssl.keystore.location",
        None,
        update=PER_BROKER,
        doc="The file with the private key and the certificate of this node.",
    )
    ssl_keystore_password = password("ssl.keystore.password", update=PER_BROKER, doc="Password of that file.")
    ssl_keystore_type = string(
        "ssl.keystore.type",
        "JKS",
        update=PER_BROKER,
        doc="Format of that file: JKS, PKCS12 or PEM.",
    )
    ssl_principal_mapping_rules = string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        importance=LOW,
        update=READ_ONLY,
        doc="Rules that turn the distinguished name of a certificate into a user name.",
    )
    ssl_protocol = string(
        "ssl.protocol", "TLSv1.3", update=PER_BROKER, inert=True, doc="The preferred TLS version."
    )
    ssl_provider = string(
        "ssl.provider", None, update=PER_BROKER, inert=True, doc="Name of the Java security provider for TLS."
    )
    ssl_secure_random_implementation = string(
        "ssl.secure.random.implementation",
        None,
        importance=LOW,
        update=PER_BROKER,
        inert=True,
        doc="Name of the Java source of randomness for TLS.",
    )
    ssl_trustmanager_algorithm = string(
        "ssl.trustmanager.algorithm",
        "PKIX",
        update=PER_BROKER,
        inert=True,
        doc="The Java trust manager algorithm.",
    )
    ssl_truststore_certificates = password(
        "ssl.truststore.certificates",
        update=PER_BROKER,
        doc="The trusted certificates, as PEM text.",
    )
    ssl_truststore_location = string(
        "ssl.truststore.location",
        None,
        update=PER_BROKER,
        doc="The file with the trusted certificates.",
    )
    ssl_truststore_password = password(
        "ssl.truststore.password", update=PER_BROKER, doc="Password of that file."
    )
    ssl_truststore_type = string(
        "ssl.truststore.type",
        "JKS",
        update=PER_BROKER,
        doc="Format of that file: JKS, PKCS12 or PEM.",
    )
