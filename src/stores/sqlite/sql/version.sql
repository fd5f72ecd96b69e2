-- Version of the tables in the caller's database, whose user_version and application_id belong to its owner.

-- name: ownTables
select lower(name) as name from sqlite_schema
where type in ('table', 'view') and name collate nocase in ('holdfast_version', 'holdfast_job');

-- name: makeVersion
create table holdfast_version (only integer primary key check (only = 1), version integer not null) strict;

-- name: writeVersion
insert into holdfast_version (only, version) values (1, ?);

-- name: version
select version from holdfast_version;
