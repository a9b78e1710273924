-- Figures count what happened to a suggestion once, whatever the number of reports.
-- migrations/sqlite/0008_feedback_counts.sql gives the reasons.

alter table feedback_events add column fact bytea;
alter table feedback_events add column repeated bigint not null default 0;

update feedback_events set repeated = 1 where key_hash in (
    select key_hash from (
        select key_hash, row_number() over (
            partition by completion_id, slot, article_id, kind order by at, key_hash
        ) as place
        from feedback_events
    ) as numbered where place > 1
);

insert into feedback_events
    (key_hash, kind, completion_id, slot, article_id, rank, release, method, arm, customer_id, at)
select key_hash || '\x00'::bytea, 'shown', completion_id, slot, article_id, rank, release, method, arm,
    customer_id, at
from (
    select *, row_number() over (partition by completion_id, slot, article_id order by at, key_hash) as place
    from feedback_events as judged
    where not exists (
        select 1 from feedback_events as shown
        where shown.kind = 'shown' and shown.completion_id = judged.completion_id
            and shown.slot = judged.slot and shown.article_id = judged.article_id
    )
) as numbered where place = 1;

create unique index feedback_events_fact_unique on feedback_events (fact);
drop index feedback_events_by_method;
create index feedback_events_counted on feedback_events (release, method, arm, kind) where repeated = 0;
