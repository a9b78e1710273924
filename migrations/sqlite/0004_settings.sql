-- What all replicas share: settings that admins make, and how often tables changed.

-- One row a setting: which release is active, how traffic is routed, what signs tickets. Few and read whole,
-- so their insides are JSON or plain text that only the program understands.
create table settings (
    name text not null,
    value text not null,
    changed integer not null,
    constraint settings_name_unique primary key (name)
) strict;

-- A number a table that grows with every change of it. Whoever keeps a copy in memory, in this process or
-- another one, compares the number instead of reading the table.
create table revisions (
    name text not null,
    value integer not null,
    constraint revisions_name_unique primary key (name)
) strict;

insert into revisions (name, value) values ('articles', 0), ('settings', 0);
