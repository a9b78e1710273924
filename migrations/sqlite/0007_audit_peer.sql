-- Where a request came from that changed something, or tried to sign in.

-- An IP address as text; null for what the service did itself, and in entries from before. Behind a proxy it is the
-- proxy's, because an address that a caller writes into a header proves nothing.
alter table audit_log add column peer text;

-- It is a fact of the entry like the others.
drop trigger audit_log_keeps_facts;
create trigger audit_log_keeps_facts before update of seq, at, person_id, key_id, action, peer on audit_log
begin
    select raise(abort, 'audit_log is append-only');
end;
