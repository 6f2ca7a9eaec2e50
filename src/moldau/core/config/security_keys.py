"""Broker settings for authentication, encryption, authorization and quotas."""

from __future__ import annotations

from moldau.core.config.key import ConfigKey, ConfigType, Dynamic, at_least, one_of

__all__ = ["SECURITY_KEYS"]

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
LIST, CLASS, PASSWORD, DOUBLE = ConfigType.LIST, ConfigType.CLASS, ConfigType.PASSWORD, ConfigType.DOUBLE
BROKER = Dynamic.BROKER

AUTHORIZATION = [
    ConfigKey("authorizer.class.name", STRING, "", "Which authorizer guards the cluster; empty lets everybody in."),
    ConfigKey("super.users", STRING, "", "Principals that may do anything, separated by semicolons."),
    ConfigKey("allow.everyone.if.no.acl.found", BOOLEAN, False, "Whether a resource without rules is open."),
    ConfigKey("principal.builder.class", CLASS, None, "How a connection's principal is made.", None, BROKER),
]

SASL = [
    ConfigKey("sasl.enabled.mechanisms", LIST, ["GSSAPI"], "The mechanisms clients may choose from.", None, BROKER),
    ConfigKey("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", "The mechanism brokers use.", None, BROKER),
    ConfigKey("sasl.mechanism.controller.protocol", STRING, "GSSAPI", "The mechanism used towards controllers."),
    ConfigKey("sasl.jaas.config", PASSWORD, None, "Login settings of a listener and mechanism.", None, BROKER),
    ConfigKey("sasl.server.callback.handler.class", CLASS, None, "Who checks credentials.", None, BROKER),
    ConfigKey("sasl.client.callback.handler.class", CLASS, None, "Who provides credentials.", None, BROKER),
    ConfigKey("sasl.login.callback.handler.class", CLASS, None, "Who provides logins.", None, BROKER),
    ConfigKey("sasl.login.class", CLASS, None, "How logins are made.", None, BROKER),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.url", STRING, None, "Where keys to verify tokens are published."),
    ConfigKey("sasl.oauthbearer.expected.audience", LIST, None, "Audiences a token may name."),
    ConfigKey("sasl.oauthbearer.expected.issuer", STRING, None, "The issuer a token must name."),
    ConfigKey("sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that holds the scope."),
    ConfigKey("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim that holds the principal."),
    ConfigKey("sasl.oauthbearer.clock.skew.seconds", INT, 30, "How far clocks may differ."),
    ConfigKey("connections.max.reauth.ms", LONG, 0, "How long a login lasts; 0 is for ever."),
    ConfigKey("sasl.server.max.receive.size", INT, 524_288, "The largest login message."),
    ConfigKey("sasl.kerberos.service.name", STRING, None, "Concerns Kerberos.", None, BROKER),
    ConfigKey("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", "Concerns Kerberos.", None, BROKER),
    ConfigKey("sasl.kerberos.min.time.before.relogin", LONG, 60_000, "Concerns Kerberos.", None, BROKER),
    ConfigKey("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, "Concerns Kerberos.", None, BROKER),
    ConfigKey("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, "Concerns Kerberos.", None, BROKER),
    ConfigKey("sasl.kerberos.principal.to.local.rules", LIST, ["DEFAULT"], "Concerns Kerberos.", None, BROKER),
]

SSL = [
    ConfigKey(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients show a certificate.",
        one_of("none", "requested", "required"),
        BROKER,
    ),
    ConfigKey("ssl.keystore.type", STRING, "JKS", "The keystore's format; PEM is best supported.", None, BROKER),
    ConfigKey("ssl.truststore.type", STRING, "JKS", "The truststore's format; PEM is best supported.", None, BROKER),
    ConfigKey("ssl.keystore.location", STRING, None, "The keystore's file.", None, BROKER),
    ConfigKey("ssl.keystore.password", PASSWORD, None, "The keystore's password.", None, BROKER),
    ConfigKey("ssl.key.password", PASSWORD, None, "The private key's password.", None, BROKER),
    ConfigKey("ssl.truststore.location", STRING, None, "The truststore's file.", None, BROKER),
    ConfigKey("ssl.truststore.password", PASSWORD, None, "The truststore's password.", None, BROKER),
    ConfigKey("ssl.keystore.key", PASSWORD, None, "The private key as PEM text.", None, BROKER),
    ConfigKey("ssl.keystore.certificate.chain", PASSWORD, None, "The certificates as PEM text.", None, BROKER),
    ConfigKey("ssl.truststore.certificates", PASSWORD, None, "Trusted certificates as PEM text.", None, BROKER),
    ConfigKey("ssl.protocol", STRING, "TLSv1.3", "The preferred TLS version.", None, BROKER),
    ConfigKey("ssl.enabled.protocols", LIST, ["TLSv1.2", "TLSv1.3"], "TLS versions on offer.", None, BROKER),
    ConfigKey("ssl.provider", STRING, None, "Concerns Java only; ignored.", None, BROKER),
    ConfigKey("ssl.cipher.suites", LIST, [], "Cipher suites on offer; empty is the library's choice.", None, BROKER),
    ConfigKey("ssl.endpoint.identification.algorithm", STRING, "https", "How host names are checked.", None, BROKER),
    ConfigKey("ssl.keymanager.algorithm", STRING, "SunX509", "Concerns Java only; ignored.", None, BROKER),
    ConfigKey("ssl.trustmanager.algorithm", STRING, "PKIX", "Concerns Java only; ignored.", None, BROKER),
    ConfigKey("ssl.secure.random.implementation", STRING, None, "Concerns Java only; ignored.", None, BROKER),
    ConfigKey("ssl.engine.factory.class", CLASS, None, "Concerns Java only; ignored.", None, BROKER),
    ConfigKey("ssl.principal.mapping.rules", STRING, "DEFAULT", "How a certificate's name becomes a principal."),
    ConfigKey("ssl.allow.dn.changes", BOOLEAN, False, "Whether a new keystore may carry another name."),
    ConfigKey("ssl.allow.san.changes", BOOLEAN, False, "Whether a new keystore may carry other host names."),
]

TOKENS = [
    ConfigKey(
        "delegation.token.secret.key", PASSWORD, None, "The secret tokens are signed with; none disables tokens."
    ),
    ConfigKey(
        "delegation.token.max.lifetime.ms", LONG, 604_800_000, "The longest a token can be renewed.", at_least(1)
    ),
    ConfigKey("delegation.token.expiry.time.ms", LONG, 86_400_000, "How long a token is valid.", at_least(1)),
    ConfigKey(
        "delegation.token.expiry.check.interval.ms", LONG, 3_600_000, "How often old tokens are removed.", at_least(1)
    ),
]

QUOTAS = [
    ConfigKey("quota.window.num", INT, 11, "Samples in a client quota's window.", at_least(1)),
    ConfigKey("quota.window.size.seconds", INT, 1, "The length of each.", at_least(1)),
    ConfigKey("controller.quota.window.num", INT, 11, "Samples in the mutation quota's window.", at_least(1)),
    ConfigKey("controller.quota.window.size.seconds", INT, 1, "The length of each.", at_least(1)),
    ConfigKey("replication.quota.window.num", INT, 11, "Samples in the replication quota's window.", at_least(1)),
    ConfigKey("replication.quota.window.size.seconds", INT, 1, "The length of each.", at_least(1)),
    ConfigKey(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "Samples in the folder move quota's window.",
        at_least(1),
    ),
    ConfigKey("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, "The length of each.", at_least(1)),
]

SECURITY_KEYS = [*AUTHORIZATION, *SASL, *SSL, *TOKENS, *QUOTAS]
