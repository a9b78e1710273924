-- Saved outfits that stylists name, change, delete, bring back and show to customers, and their notes about customers.

-- Empty for none. The customer sees the name; the note is the shop's own.
alter table outfits add column name text not null default '';
alter table outfits add column note text not null default '';
-- What a search looks in: name, customer and author in lower case. Imported outfits have none, because lists of saved
-- outfits leave them out.
alter table outfits add column name_key text not null default '';
-- 1 for an outfit with blanks or with too few articles, an empty id being a blank. Training and exports leave drafts out.
alter table outfits add column draft integer not null default 0;
-- Of the last change in place; 0 for imported outfits, which do not change.
alter table outfits add column changed_at integer not null default 0;
-- A deleted outfit can be brought back for a while. Its digest is another one meanwhile, so that the same outfit can be
-- saved again.
alter table outfits add column deleted_at integer;
-- The customer's link: SHA-256 of its token, so that the address cannot be read from this table.
alter table outfits add column link_hash blob;
alter table outfits add column link_expires_at integer;

update outfits set changed_at = created_at, name_key = lower(customer_id) || ' ' || coalesce(
    (select people.name_key from people where people.id = outfits.person_id), '')
where origin <> 'imported';

create unique index outfits_link_unique on outfits (link_hash) where link_hash is not null;
-- Lists of saved outfits, the latest first; a shop may have imported a million others.
create index outfits_saved on outfits (changed_at, seq) where origin <> 'imported';
-- Whose last saved outfit is the oldest.
create index outfits_saved_for on outfits (customer_id, created_at) where origin <> 'imported';
create index outfits_deleted on outfits (deleted_at) where deleted_at is not null;
-- Who refused suggestions since their last outfit.
create index feedback_events_refused on feedback_events (customer_id, at)
    where kind = 'rejected' and customer_id is not null;

create table customer_notes (
    id integer primary key autoincrement,
    customer_id text not null,
    -- Who wrote it.
    person_id integer not null,
    note text not null,
    at integer not null,
    constraint customer_notes_customer_known
        foreign key (customer_id) references customers (id) on delete cascade,
    constraint customer_notes_person_known foreign key (person_id) references people (id)
) strict;

create index customer_notes_by_customer on customer_notes (customer_id, id);
