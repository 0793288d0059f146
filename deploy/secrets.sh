#!/bin/sh
# Makes the passwords for deploy/compose.postgres.yaml in the folder `secrets`. Run it once, in the folder above this one.
# Only the account that runs it can enter the folder. The files are readable, because each container has its own user.
set -eu
mkdir -m 700 secrets || {
    echo "secrets: a database may already use these passwords; they were not changed" >&2
    exit 1
}
password() {
    head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}
password > secrets/superuser
# libpq reads these two as its service file, because that is the only one in which it accepts any owner and mode.
for account in owner app; do
    printf '[memoryos]\npassword=%s\n' "$(password)" > "secrets/$account"
done
chmod 444 secrets/*
