-- Saved outfits that stylists work with, and their notes about customers. migrations/sqlite/0012_saved_outfits.sql gives
-- the reasons.

alter table outfits add column name text collate "C" not null default '';
alter table outfits add column note text collate "C" not null default '';
alter table outfits add column name_key text collate "C" not null default '';
alter table outfits add column draft bigint not null default 0;
alter table outfits add column changed_at bigint not null default 0;
alter table outfits add column deleted_at bigint;
alter table outfits add column link_hash bytea;
alter table outfits add column link_expires_at bigint;

update outfits set changed_at = created_at, name_key = lower(customer_id) || ' ' || coalesce(
    (select people.name_key from people where people.id = outfits.person_id), '')
where origin <> 'imported';

create unique index outfits_link_unique on outfits (link_hash) where link_hash is not null;
create index outfits_saved on outfits (changed_at, seq) where origin <> 'imported';
create index outfits_saved_for on outfits (customer_id, created_at) where origin <> 'imported';
create index outfits_deleted on outfits (deleted_at) where deleted_at is not null;
create index feedback_events_refused on feedback_events (customer_id, at)
    where kind = 'rejected' and customer_id is not null;

create table customer_notes (
    id bigint generated always as identity primary key,
    customer_id text collate "C" not null,
    person_id bigint not null,
    note text collate "C" not null,
    at bigint not null,
    constraint customer_notes_customer_known
        foreign key (customer_id) references customers (id) on delete cascade,
    constraint customer_notes_person_known foreign key (person_id) references people (id)
);

create index customer_notes_by_customer on customer_notes (customer_id, id);
