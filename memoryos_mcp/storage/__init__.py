"""Stores: where a user's memory is kept.

`interface` is the protocol of every store, `values` what goes in and comes out, `sqlite` the store in files.
"""
