-- Links that sign a person in once: the first admin's, a new colleague's, that of whoever forgot a password.

create table sign_in_links (
    -- SHA-256 of the link's token: who reads this table cannot sign in with it.
    token_hash blob not null,
    person_id integer not null,
    created_at integer not null,
    expires_at integer not null,
    constraint sign_in_links_token_unique primary key (token_hash),
    -- A newer link replaces the one before it, so that of one that went astray nothing is left.
    constraint sign_in_links_person_unique unique (person_id),
    constraint sign_in_links_person_known foreign key (person_id) references people (id) on delete cascade
) strict;
