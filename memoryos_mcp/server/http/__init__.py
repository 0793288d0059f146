"""The memory over HTTP: who is calling, the guards in front of every route, and serving.

`access` identifies the caller by a static token from an operator, or by a token of an OAuth or OIDC issuer, which
`jwt_tokens` checks.
"""
