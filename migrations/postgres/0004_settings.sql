-- What all replicas share: settings that admins make, and how often tables changed.
-- migrations/sqlite/0004_settings.sql gives the reasons.

create table settings (
    name text collate "C" not null,
    value text not null,
    changed bigint not null,
    constraint settings_name_unique primary key (name)
);

create table revisions (
    name text collate "C" not null,
    value bigint not null,
    constraint revisions_name_unique primary key (name)
);

insert into revisions (name, value) values ('articles', 0), ('settings', 0);
