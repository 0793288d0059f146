-- Makes the database and its two accounts, which docs/scaling.md describes. PostgreSQL's image runs this script with
-- psql as the superuser. The passwords are those that secrets.sh has made.
\set owner_password `sed -n 's/^password=//p' /run/secrets/owner`
\set app_password `sed -n 's/^password=//p' /run/secrets/app`

CREATE ROLE memoryos_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE memoryos LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB PASSWORD :'app_password';
CREATE DATABASE memoryos OWNER memoryos_owner TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8';
REVOKE ALL ON DATABASE memoryos FROM PUBLIC;
GRANT CONNECT ON DATABASE memoryos TO memoryos;

\connect memoryos
CREATE EXTENSION vector;
CREATE SCHEMA memoryos AUTHORIZATION memoryos_owner;
GRANT USAGE ON SCHEMA memoryos TO memoryos;
ALTER DEFAULT PRIVILEGES FOR ROLE memoryos_owner IN SCHEMA memoryos
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO memoryos;
-- With this right, which version 17 added, the servers' account can run VACUUM after forgetting.
SELECT current_setting('server_version_num')::integer >= 170000 AS has_maintain \gset
\if :has_maintain
    ALTER DEFAULT PRIVILEGES FOR ROLE memoryos_owner IN SCHEMA memoryos GRANT MAINTAIN ON TABLES TO memoryos;
\endif
