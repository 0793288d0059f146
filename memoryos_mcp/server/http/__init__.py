"""The MCP server over HTTP: `app` has the routes and the guards in front of them, and `serving` runs it.

`access` identifies the caller by a static token that the operator made, or by a JWT of an OAuth or OIDC issuer, which
`jwt_tokens` checks.
"""
