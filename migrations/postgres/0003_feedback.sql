-- What became of suggestions. One row is one thing that happened to one suggested article.
-- migrations/sqlite/0003_feedback.sql gives the reasons.

create table feedback_events (
    key_hash bytea not null,
    kind text collate "C" not null,
    completion_id text collate "C" not null,
    slot bigint not null,
    article_id text collate "C" not null,
    rank bigint not null,
    release text collate "C" not null,
    method text collate "C" not null,
    arm text collate "C",
    customer_id text collate "C",
    at bigint not null,
    constraint feedback_events_key_unique primary key (key_hash),
    constraint feedback_events_customer_known
        foreign key (customer_id) references customers (id) on delete set null,
    constraint feedback_events_kind_valid check (kind in ('shown', 'accepted', 'rejected', 'bought'))
);

create index feedback_events_by_completion on feedback_events (completion_id);
create index feedback_events_by_method on feedback_events (release, method, arm, kind);
create index feedback_events_by_customer on feedback_events (customer_id) where customer_id is not null;
