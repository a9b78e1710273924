-- What a shop brings: articles, customers, outfits.
--
-- migrations/sqlite/0002_catalogue.sql gives the reason for each column and index.

create table articles (
    id text collate "C" not null,
    type text collate "C" not null,
    attributes text not null,
    name_key text collate "C" not null,
    revision bigint not null default 1,
    created_at bigint not null,
    updated_at bigint not null,
    constraint articles_id_unique primary key (id)
);

create table customers (
    id text collate "C" not null,
    features text not null,
    name_key text collate "C" not null,
    revision bigint not null default 1,
    created_at bigint not null,
    updated_at bigint not null,
    constraint customers_id_unique primary key (id)
);

create table outfits (
    -- Numbers may have gaps: a repetition takes one and gives it back to nobody.
    seq bigint generated always as identity primary key,
    digest bytea not null,
    customer_id text collate "C" not null,
    articles text not null,
    split text collate "C",
    features text not null,
    origin text collate "C" not null,
    person_id bigint,
    revision bigint not null default 1,
    created_at bigint not null,
    constraint outfits_digest_unique unique (digest),
    constraint outfits_customer_known foreign key (customer_id) references customers (id) on delete cascade,
    constraint outfits_person_known foreign key (person_id) references people (id),
    constraint outfits_split_valid check (split in ('train', 'validation')),
    constraint outfits_origin_valid check (origin in ('imported', 'saved', 'accepted'))
);

create index outfits_by_customer on outfits (customer_id, seq);
