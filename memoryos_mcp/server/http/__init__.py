"""The memory over HTTP: who is calling, and the door they come through.

`tokens` keeps the static tokens that an operator hands out; `jwt_tokens` checks those of an OAuth or OIDC issuer;
`access` tries both, and says who the caller is.
"""
