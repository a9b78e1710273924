-- Figures over months of feedback are read at once: reading half a million events takes a second.
-- migrations/sqlite/0013_acceptance.sql gives the reasons.

create table feedback_counts (
    id bigint generated always as identity primary key,
    shown_day bigint not null,
    release text collate "C" not null,
    method text collate "C" not null,
    arm text collate "C" not null,
    article_type text collate "C" not null,
    is_new bigint not null,
    shown bigint not null default 0,
    accepted bigint not null default 0,
    rejected bigint not null default 0,
    bought bigint not null default 0,
    constraint feedback_counts_key_unique unique (shown_day, release, method, arm, article_type, is_new)
);

alter table feedback_events add column counts_id bigint;
alter table feedback_events add column shown_day bigint;

update feedback_events set shown_day = shown.at / 86400000 from feedback_events as shown
where feedback_events.repeated = 0 and shown.kind = 'shown' and shown.repeated = 0
    and shown.completion_id = feedback_events.completion_id
    and shown.slot = feedback_events.slot and shown.article_id = feedback_events.article_id;

insert into feedback_counts
    (shown_day, release, method, arm, article_type, is_new, shown, accepted, rejected, bought)
select shown_day, release, method, coalesce(arm, ''), coalesce(type, ''), -1,
    count(case when kind = 'shown' then 1 end), count(case when kind = 'accepted' then 1 end),
    count(case when kind = 'rejected' then 1 end), count(case when kind = 'bought' then 1 end)
from feedback_events left join articles on articles.id = article_id
where shown_day is not null
group by 1, 2, 3, 4, 5;

update feedback_events set counts_id = (
    select c.id from feedback_counts c
    where c.shown_day = feedback_events.shown_day and c.release = feedback_events.release
        and c.method = feedback_events.method and c.arm = coalesce(feedback_events.arm, '')
        and c.article_type = coalesce((select type from articles where id = feedback_events.article_id), '')
)
where kind = 'shown' and shown_day is not null;

drop index feedback_events_by_customer;
create index feedback_events_by_customer on feedback_events (customer_id, shown_day, kind) where customer_id is not null;
drop index feedback_events_counted;
