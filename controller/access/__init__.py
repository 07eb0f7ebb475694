"""Who may do what: identities from certificates and tokens, their roles, tenants and quotas, and the server's TLS."""
