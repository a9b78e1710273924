-- What a shop brings: articles, customers, outfits.

create table articles (
    -- The shop's own key. Bytes order it: lists, cursors and exports are the same on both databases.
    id text not null,
    type text not null,
    -- A JSON object: every shop's attributes differ.
    attributes text not null,
    -- What a search looks at: id, type and textual attributes, lower-cased by the program, because
    -- SQLite's lower() knows ASCII alone. A search may begin in the middle of a word, which no
    -- B-tree helps with, so it has no index: it is read along the primary key until a page is full.
    name_key text not null,
    -- 1 when the row is new, one more for each change: an upsert can say in one statement whether it
    -- added, changed or left alone.
    revision integer not null default 1,
    created_at integer not null,
    updated_at integer not null,
    constraint articles_id_unique primary key (id)
) strict;

create table customers (
    id text not null,
    -- A JSON object: text, number or list of texts by name. Profiles outlive schemas, so what the
    -- features mean is not decided here.
    features text not null,
    name_key text not null,
    revision integer not null default 1,
    created_at integer not null,
    updated_at integer not null,
    constraint customers_id_unique primary key (id)
) strict;

create table outfits (
    -- The order in which outfits came, for export and cursors. autoincrement: a number is never used
    -- again, so a cursor held across a deletion does not point at something else.
    seq integer primary key autoincrement,
    -- SHA-256 over customer, sorted articles and features: importing a file twice, or saving the same
    -- outfit twice, does not double it. The split is left out, so that a later file may move an outfit
    -- into another. Where one file holds an outfit more than once, how often it came before is hashed
    -- too: it comes back as often as it was there.
    digest blob not null,
    -- An outfit is about a person: erasing the customer erases it.
    customer_id text not null,
    -- A JSON array of article ids, and no table of its own: an outfit is a value. An article that
    -- leaves the catalogue does not un-happen the outfits that it was part of.
    articles text not null,
    split text,
    features text not null,
    origin text not null,
    -- Who saved it in the studio. Accounts are disabled, never deleted (see people).
    person_id integer,
    revision integer not null default 1,
    created_at integer not null,
    constraint outfits_digest_unique unique (digest),
    constraint outfits_customer_known foreign key (customer_id) references customers (id) on delete cascade,
    constraint outfits_person_known foreign key (person_id) references people (id),
    constraint outfits_split_valid check (split in ('train', 'validation')),
    constraint outfits_origin_valid check (origin in ('imported', 'saved', 'accepted'))
) strict;

-- A customer's page lists their outfits in order; erasing a customer finds them.
create index outfits_by_customer on outfits (customer_id, seq);
