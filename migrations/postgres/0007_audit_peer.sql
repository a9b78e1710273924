-- migrations/sqlite/0007_audit_peer.sql gives the reasons.

alter table audit_log add column peer text collate "C";

drop trigger audit_log_keeps_facts on audit_log;
create trigger audit_log_keeps_facts before update of seq, at, person_id, key_id, action, peer on audit_log
    for each statement execute function audit_log_is_append_only();
