-- What was suggested, so that feedback can be held against it; and how often tables changed.
-- migrations/sqlite/0004_completions.sql gives the reasons.

create table completions (
    id text collate "C" not null,
    release text collate "C" not null,
    method text collate "C" not null,
    arm text collate "C",
    customer_id text collate "C",
    outfit text not null,
    suggestions text not null,
    at bigint not null,
    constraint completions_id_unique primary key (id),
    constraint completions_customer_known foreign key (customer_id) references customers (id) on delete set null
);

create index completions_by_time on completions (at);
create index completions_by_customer on completions (customer_id) where customer_id is not null;

create table revisions (
    name text collate "C" not null,
    value bigint not null,
    constraint revisions_name_unique primary key (name)
);

insert into revisions (name, value) values ('articles', 0);
