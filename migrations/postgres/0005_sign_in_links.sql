-- Links that sign a person in once. migrations/sqlite/0005_sign_in_links.sql gives the reasons.

create table sign_in_links (
    token_hash bytea not null,
    person_id bigint not null,
    created_at bigint not null,
    expires_at bigint not null,
    constraint sign_in_links_token_unique primary key (token_hash),
    constraint sign_in_links_person_unique unique (person_id),
    constraint sign_in_links_person_known foreign key (person_id) references people (id) on delete cascade
);
