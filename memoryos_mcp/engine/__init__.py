"""The engine: one user's memory behind one class, and the service that opens one per user.

`engine` answers calls, `service` keeps the engines of many users, `wiring` makes what they share. `tools` gives each
call its arguments, its result and its text.
"""
