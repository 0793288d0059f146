"""Storage: where a user's memory is kept.

`interface` and `user_data` are the protocols, `values` their values, `sqlite` the implementation.
"""
