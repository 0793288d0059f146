"""The MCP server over HTTP.

`app` contains the routes and the guards that every request passes. `serving` runs the server. `access` identifies the
caller by a static token that the operator created, or by a JWT from an OAuth or OIDC issuer. `jwt_tokens` checks JWTs.
"""
