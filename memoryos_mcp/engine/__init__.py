"""The engine: one user's memory behind one class, and the service that opens one per user.

`engine` handles calls, `service` manages the engines of many users, `wiring` builds the components that they share.
`tools` gives each call its arguments, its result and its text.
"""
