//! Rejected responses: what is held back, and for how long.

use crate::story::{both, delta, sotw};

/// B-05, B-06, B-07, L-5: only the error makes a request a rejection; the version beside it says nothing.
#[test]
fn rejected_with_the_current_version() {
    sotw(
        "
        origin put eds A@1 B@1
        client sends eds [A]
        client <- eds [A@1]
        client sends eds [A] v1 n1 => ack
        client status eds Synced
        client sends eds [A B] v1 n1 => update
        client <- eds [B@1]
        client status eds Stale
        client sends eds [A B] v1 n2 ! => nack
        client status eds Error
        client sends eds [A B] v1 n2 => update
        client status eds Error
        nothing for 5s
        ",
    );
}

/// B-07, B-21, B-22, K-08, L-6: a rejected state is not sent again, whatever version the rejection carries, until it changes.
#[test]
fn rejections_do_not_loop() {
    for version in ["", "v1", "v2"] {
        sotw(&format!(
            "
            origin put cds a@1
            client subscribe cds
            client <- cds [a@1], ack
            origin put cds a@2
            client <- cds [a@2]
            client sends cds [] {version} n2 ! => nack
            nothing for 2s
            client status cds Error
            origin put cds a@3
            client <- cds [a@3], ack
            client status cds Synced
            ",
        ));
    }
    delta(
        "
        origin put cds a@1
        client subscribe cds
        client <- cds [a@1], nack
        nothing for 2s
        client status cds Error
        origin put cds a@2
        client <- cds [a@2], ack
        client status cds Synced
        ",
    );
}

/// B-23: the names of a rejection count.
#[test]
fn a_rejection_that_names_more() {
    sotw(
        "
        origin put rds A@1 B@1
        client sends rds [A]
        client <- rds [A@1]
        client sends rds [A B] n1 ! => nack
        client <- rds [B@1]
        client sends rds [B] v2 n2 => ack
        nothing
        origin put rds A@2
        nothing
        ",
    );
}

/// B-22, C-25, K-08, L-26, M-02: the whole of a rejected response is held back until one of its members changes or goes; then all
/// its members are owed again, in one response.
#[test]
fn rejected_and_repaired() {
    both(
        "
        origin put eds A@1 B@bad
        client subscribe eds A B
        client <- eds [A@1 B@bad], nack
        nothing for 2s
        client status eds Error
        origin put eds B@good
        client <- eds [A@1 B@good], ack
        client status eds Synced
        ",
    );
}

/// B-22, C-25, L-26: a member that goes away releases the others.
#[test]
fn rejected_and_one_goes() {
    both(
        "
        origin put eds A@1 B@bad
        client subscribe eds A B
        client <- eds [A@1 B@bad], nack
        nothing for 2s
        origin drop eds B
        client <- eds sotw [A@1] | delta [A@1] -[B]
        client ack
        ",
    );
}

/// B-22: a client that gives up a member of what it rejected is sent the others: that member may have been the bad one.
#[test]
fn rejected_and_one_is_given_up() {
    both(
        "
        origin put eds A@1 B@bad C@1
        client subscribe eds A B C
        client <- eds [A@1 B@bad C@1], nack
        nothing for 2s
        client unsubscribe eds B
        client <- eds [A@1 C@1], ack
        client status eds Synced
        nothing for 2s
        ",
    );
}

/// B-22: the same with a member of a collection, and with a wildcard that ends.
#[test]
fn rejected_and_more_is_given_up() {
    delta(
        "
        origin put cds a@1 b@bad
        client subscribe cds * a
        client <- cds [a@1 b@bad], nack
        nothing for 2s
        client unsubscribe cds *
        client <- cds [a@1], ack
        nothing for 2s
        ",
    );
    delta(
        "
        origin put lds z@1 xdstp://a/LDS/x/a@bad
        client sends lds +z +xdstp://a/LDS/x/*
        client <- lds [xdstp://a/LDS/x/a@bad z@1], nack
        nothing for 2s
        client sends lds -xdstp://a/LDS/x/*
        client <- lds [z@1], ack
        nothing for 2s
        ",
    );
    delta(
        "
        origin put sds s@bad:aka=t other@1
        client subscribe sds t other
        client <- sds [other@1 s@bad:aka=t], nack
        nothing for 2s
        client sends sds -t
        client <- sds [other@1], ack
        nothing for 2s
        ",
    );
}

/// B-22: a member that was given up, or sent in another form, before the rejection arrived may have been the bad one.
#[test]
fn rejected_and_one_has_moved_on() {
    delta(
        "
        origin put eds A@1 B@1
        client sends eds +A +B
        client <- eds [A@1 B@1]
        origin put eds B@2
        client sends eds +B
        client <- eds [B@2]
        client sends eds n1 ! => nack
        client <- eds [A@1]
        client sends eds n2 => ack
        client sends eds n3 => ack
        client status eds Synced
        nothing for 2s
        ",
    );
    delta(
        "
        origin put eds A@1 B@1
        client sends eds +A +B
        client <- eds [A@1 B@1]
        client sends eds -B
        nothing
        client sends eds n1 ! => nack
        client <- eds [A@1], ack
        nothing for 2s
        ",
    );
}

/// B-22: that a member was sent again proves nothing; that it was accepted does. The bad one is among the remaining members,
/// until one of them changes.
#[test]
fn rejected_and_one_is_sent_again() {
    let story = |end: &str| {
        delta(&format!(
            "
            origin put eds a@1 b@1
            client sends eds +a +b
            client <- eds [a@1 b@1], nack
            nothing for 2s
            client sends eds +a
            client <- eds [a@1]
            {end}
            nothing for 2s
            ",
        ));
    };
    story(
        "
            client nack
            nothing for 2s
            origin put eds a@2
            client <- eds [a@2 b@1], ack
            client status eds Synced
        ",
    );
    story(
        "
            client ack
            client status eds Error
            origin put eds a@2
            client <- eds [a@2], ack
            client status eds Error
            origin put eds b@2
            client <- eds [b@2], ack
            client status eds Synced
        ",
    );
}

/// B-22, C-15: of what never was a client holds nothing, also if it rejects to hear so after it gave the name up, and asks for it
/// again. Every time it asks it is answered, even if nobody has said anything of that name in time.
#[test]
fn rejected_and_what_never_was_is_asked_for_again() {
    delta(
        "
        origin talks sotw, put eds b@1
        client sends eds +c
        client sends eds +* -c
        client <- eds [b@1] -[c]
        client sends eds +c
        wait 15s
        client <- eds -[c]
        client sends eds n1 ! => nack
        origin put eds b@2
        client <- eds [b@2] -[c]
        client sends eds n2 => ack
        client sends eds n3 => ack
        client sends eds +c
        client <- eds -[c], ack
        ",
    );
    delta(
        "
        origin put eds b@1
        client sends eds +* +c
        client <- eds [b@1] -[c]
        client sends eds -c
        client <- eds -[c]
        client sends eds n1 ! => nack
        client sends eds n2 ! => nack
        nothing for 2s
        origin put eds c@1
        client <- eds [b@1 c@1], ack
        ",
    );
}

/// B-22: rejections that share a member are one: any member may have been the bad one.
#[test]
fn rejections_that_share_a_member() {
    delta(
        "
        origin put eds a@1 b@1 c@1
        client sends eds +a +b
        client <- eds [a@1 b@1], nack
        client sends eds +b +c
        client <- eds [b@1 c@1], nack
        nothing for 2s
        origin put eds c@2
        client <- eds [a@1 b@1 c@2], ack
        client status eds Synced
        nothing for 2s
        ",
    );
}

/// B-22, C-15, L-26: that a name does not exist is sent again with the others.
#[test]
fn rejected_and_one_never_was() {
    delta(
        "
        origin put eds A@bad
        client subscribe eds A gone
        client <- eds [A@bad] -[gone], nack
        nothing for 2s
        origin put eds A@good
        client <- eds [A@good] -[gone], ack
        ",
    );
}

/// B-22, C-15, C-22: a client that rejects that a name does not exist holds nothing for that name, and so nothing of its
/// collection either. The collection is answered when its members go before they were sent.
#[test]
fn a_rejected_absence_is_no_answer_for_a_collection() {
    delta(
        "
        origin put lds z@1 xdstp://a/LDS/x/a@1
        client subscribe lds z
        client <- lds [z@1]
        client sends lds +xdstp://a/LDS/x/* +xdstp://a/LDS/x/gone => update
        client <- lds -[xdstp://a/LDS/x/gone]
        client sends lds n2 ! => nack
        nothing
        origin drop lds xdstp://a/LDS/x/a
        client <- lds -[xdstp://a/LDS/x/*]
        client ack
        nothing
        ",
    );
}

/// B-22, L-26: after a rejected full state the next one is sent once it is different.
#[test]
fn a_rejected_full_state() {
    sotw(
        "
        origin put cds A@1 B@bad
        client subscribe cds *
        client <- cds [A@1 B@bad], nack
        nothing for 2s
        origin put cds B@good
        client <- cds [A@1 B@good], ack
        origin put cds A@worse
        client <- cds [A@worse B@good], nack
        origin drop cds A
        client <- cds [B@good], ack
        ",
    );
}

/// B-22, C-25: a rejection does not hold back what was not in the response.
#[test]
fn neighbours_of_a_rejection_go_on() {
    both(
        "
        origin put eds A@1 B@1
        client subscribe eds A B
        client <- eds [A@1 B@1], ack
        origin put eds B@bad
        client <- eds [B@bad], nack
        origin put eds A@2
        client <- eds [A@2], ack
        nothing for 2s
        client status eds Error
        origin put eds B@1
        client <- eds [B@1], ack                 # what it holds is unknown after a rejection
        client status eds Synced
        ",
    );
}

/// B-22, K-08: a rejected full state is not sent again for a new name that adds nothing to it; a name that adds something makes
/// it a different one.
#[test]
fn a_rejected_full_state_and_more_names() {
    sotw(
        "
        origin put lds a@bad b@1
        client subscribe lds a
        client <- lds [a@bad], nack
        client subscribe lds ghost
        nothing for 2s
        client subscribe lds b
        client <- lds [a@bad b@1], nack
        nothing for 2s
        origin put lds a@good
        client <- lds [a@good b@1], ack
        ",
    );
}

/// B-22, C-25: of an answer in several parts only the rejected part is held back.
#[test]
fn one_part_is_rejected() {
    delta(
        "
        relay chunk 1
        origin put cds a@1 b@1 c@1
        client subscribe cds *
        client <- cds [a@1]
        client <- cds [b@1]
        client <- cds [c@1]
        client sends cds n2 ! => nack
        client sends cds n1 => ack
        client sends cds n3 => ack
        nothing for 2s
        client status cds Error
        origin put cds c@2
        client <- cds [c@2], ack
        origin put cds b@2
        client <- cds [b@2], ack
        client status cds Synced
        ",
    );
}

/// B-22: a rejected change that is taken back.
#[test]
fn rejected_and_rolled_back() {
    both(
        "
        origin put cds a@1 b@1
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        origin put cds a@bad
        client <- cds sotw [a@bad b@1] | delta [a@bad]
        client nack
        nothing for 2s
        origin put cds a@1
        client <- cds sotw [a@1 b@1] | delta [a@1]
        client ack
        client status cds Synced
        ",
    );
}

/// B-22, C-25: a rejected removal is not repeated, and does not stand in the way of what comes back.
#[test]
fn a_rejected_removal() {
    delta(
        "
        origin put rds a@1, put cds b@1
        client subscribe rds a
        client <- rds [a@1], ack
        client subscribe cds *
        client <- cds [b@1], ack
        origin drop rds a
        client <- rds -[a], nack
        origin drop cds b
        client <- cds -[b], nack
        nothing for 5s
        origin put rds a@1, put cds b@1
        client <- cds [b@1], ack
        client <- rds [a@1], ack
        client status rds Synced
        client status cds Synced
        ",
    );
}

/// B-22: a client that rejects everything gets each content once.
#[test]
fn a_storm_of_rejections() {
    both(
        "
        origin put lds a@1
        client subscribe lds *
        client <- lds [a@1], nack
        nothing for 2s
        origin put lds a@2
        client <- lds [a@2], nack
        nothing for 2s
        origin put lds a@3
        client <- lds [a@3], nack
        nothing for 2s
        ",
    );
}

/// K-06, K-07, L-16: a client's rejection has no effect on other clients or the upstream.
#[test]
fn one_of_three_rejects() {
    both(
        "
        origin put cds x@1
        first subscribe cds *
        first <- cds [x@1], ack
        second subscribe cds *
        second <- cds [x@1], ack
        third subscribe cds *
        third <- cds [x@1], ack
        origin put cds x@2
        first <- cds [x@2], ack
        second <- cds [x@2], nack
        third <- cds [x@2], ack
        nothing for 2s
        second status cds Error
        first status cds Synced
        origin put cds x@3
        first <- cds [x@3], ack
        second <- cds [x@3], ack
        third <- cds [x@3], ack
        second status cds Synced
        ",
    );
}

/// B-22, C-20: a resource that was rejected under an alias is not sent again because its own name was also asked for, and given
/// up.
#[test]
fn rejected_by_an_alias() {
    delta(
        "
        origin put sds s@bad:aka=t other@1
        client subscribe sds t
        client <- sds [s@bad:aka=t], nack
        client sends sds +other
        client sends sds +s -s => update
        client <- sds [other@1], ack
        origin put sds s@bad:aka=t:ttl=60s
        nothing for 2s
        origin put sds s@good:aka=t
        client <- sds [s@good:aka=t], ack
        ",
    );
}

/// B-22, C-08, F-09: a name of new style that was given up is not wanted, and no wildcard covers it: a client that rejects its
/// removal is not sent that again.
#[test]
fn rejected_of_what_was_given_up() {
    delta(
        "
        origin put cds a@1
        client sends cds +* +xdstp://a/CDS/x?b=1&a=2 -xdstp://a/CDS/x?b=1&a=2 => first
        client <- cds [a@1] -[xdstp://a/CDS/x?b=1&a=2], nack
        nothing for 2s
        origin put cds a@2
        client <- cds [a@2], ack
        nothing for 2s
        ",
    );
}

/// B-22: that a name does not exist matters only to a client that asks for it. If the client rejects that and has given up the
/// name before, it is not sent again because a wildcard has begun meanwhile.
#[test]
fn rejected_of_what_never_was() {
    delta(
        "
        origin put rds r@1, late rds
        client subscribe rds r x
        client <- rds [r@1] -[x]
        client sends rds -x
        client sends rds +* -r
        client sends rds n1 !
        origin punctual rds
        client <- rds [r@1], ack
        nothing for 2s
        ",
    );
}

/// B-22: a name that was given up before its rejection, and that the wildcard still wants, counts as unchanged: the other members
/// are not sent again.
#[test]
fn rejected_after_it_was_wanted_for_another_reason() {
    delta(
        "
        origin put eds a@1 b@1
        client stalls
        client subscribe eds a b
        client reads 1
        client <- eds [a@1 b@1]
        client sends eds -a +*
        client nack
        client reads
        client <- eds [a@1], ack
        nothing for 2s
        origin put eds b@2
        client <- eds [b@2], ack
        nothing
        ",
    );
}

/// B-22, C-07: a client that names what its wildcard has brought, and gives up the wildcard in the same request, has given up
/// nothing of what it rejected.
#[test]
fn rejected_by_a_wildcard_and_named() {
    sotw(
        "
        origin put rtds a@1 b@1
        client sends rtds [a *]
        client <- rtds [a@1 b@1]
        client sends rtds [a *] v1 n1 ! => nack
        client sends rtds [a b] v1 n1
        client <- rtds [b@1], ack
        nothing
        origin put rtds a@2
        client <- rtds [a@2], ack
        nothing
        ",
    );
}

/// B-22, C-20: a resource that was rejected under an alias is not sent again because the wildcard brings it as well.
#[test]
fn rejected_by_an_alias_and_brought_by_the_wildcard() {
    both(
        "
        origin put rds a@1:aka=nick b@1
        client subscribe rds nick
        client <- rds sotw [a@1] | delta [a@1:aka=nick], nack
        client subscribe rds *
        client <- rds [b@1], ack
        nothing
        origin put rds a@2:aka=nick
        client <- rds sotw [a@2] | delta [a@2:aka=nick], ack
        nothing
        ",
    );
}

/// B-22, B-24: a client that has accepted a removal holds nothing of the name, even if it rejected that removal before. A later
/// rejection does not count this as a change, and the other members are not sent again.
#[test]
fn a_rejected_removal_that_was_accepted_since() {
    delta(
        "
        origin put eds a@1
        client sends eds +*
        client <- eds [a@1], ack
        client stalls
        client sends eds +a +b -b
        client reads 1
        client <- eds [a@1] -[b]
        client sends eds +a +b -b
        client reads 1
        client <- eds [a@1] -[b]
        client sends eds +b
        client reads
        client <- eds -[b]
        client sends eds n2 ! => nack
        client sends eds n4 => ack
        client sends eds n3 ! => nack
        nothing for 2s
        origin put eds a@2
        client <- eds [a@2] -[b], ack
        nothing for 2s
        ",
    );
}

/// B-22, C-08: a name that was given up, and that a wildcard with nothing known yet still wants, counts as unchanged: the other
/// members are not sent again.
#[test]
fn rejected_of_what_was_given_up_beside_a_wildcard() {
    delta(
        "
        origin put eds a@1 b@1, late eds
        client sends eds +*
        client stalls
        client sends eds +a +b
        client reads 1
        client <- eds [a@1 b@1]
        client sends eds -a
        client sends eds n1 ! => nack
        client reads
        nothing for 2s
        origin punctual eds
        client <- eds [a@1], ack
        nothing for 2s
        origin put eds b@2
        client <- eds [b@2], ack
        nothing for 2s
        ",
    );
}

/// B-22, K-16: a client may hold what it has rejected, also after it has given that up under a wildcard of which nothing is known, and
/// has asked for it again: silence takes nothing away.
#[test]
fn rejected_and_given_up_under_a_wildcard() {
    delta(
        "
        origin put sds a@1
        other talks sotw, late sds
        client sends sds +a
        client <- sds [a@1], nack
        client moves other
        client sends sds +*
        client sends sds -a
        client sends sds +a
        nothing for 20s
        ",
    );
}

/// B-22, C-20, K-16: the same for a client that rejected it under an alias and then asks for its own name.
#[test]
fn rejected_under_an_alias_and_asked_for_by_its_own_name() {
    delta(
        "
        origin put sds a@1:aka=t
        other talks sotw, late sds
        client sends sds +t
        client <- sds [a@1:aka=t], nack
        client moves other
        client sends sds +a
        nothing for 20s
        ",
    );
}

/// B-15, B-22, C-11: a wildcard that begins anew brings everything that it covers, including what it had brought before and the
/// client rejects only now.
#[test]
fn rejected_of_what_the_wildcard_had_brought_before() {
    delta(
        "
        origin put eds a@1 b@1
        client stalls
        client sends eds +* +b
        client reads 1
        client <- eds [a@1 b@1]
        client sends eds -*
        client sends eds +*
        client sends eds n1 ! => nack
        client reads
        client <- eds [a@1], ack
        nothing for 2s
        ",
    );
}

/// B-22: what a client rejected is not sent again when it comes back in the wildcard of a server that did not know all of it at
/// first. Anything else that is new releases it.
#[test]
fn rejected_and_unknown_for_a_while() {
    for topic in ["sds", "eds"] {
        both(&format!(
            "
            origin put {topic} a@1 b@1
            other put {topic} a@1, open {topic}
            client subscribe {topic} *
            client <- {topic} [a@1 b@1], nack
            client moves other
            nothing for 2s
            other put {topic} b@1, complete {topic}
            nothing for 2s
            other put {topic} a@2
            client <- {topic} [a@2 b@1], ack
            ",
        ));
    }
}

/// B-15, K-08: a client that gives up what it has rejected and asks for it again is sent it, even if it has come back only since.
#[test]
fn a_rejected_full_state_is_given_up() {
    sotw(
        "
        origin put lds a@1
        client sends lds [a]
        client <- lds [a@1], nack
        client sends lds []
        origin drop lds a
        client sends lds [a]
        nothing for 2s
        origin put lds a@1
        client <- lds [a@1], ack
        nothing for 2s
        ",
    );
    // It gives it up before it rejects it.
    sotw(
        "
        origin put lds a@1
        client sends lds [a]
        client <- lds [a@1]
        client sends lds []
        origin drop lds a
        client sends lds [a] n1 ! => nack
        nothing for 2s
        origin put lds a@1
        client <- lds [a@1], ack
        nothing for 2s
        ",
    );
}

/// B-22, B-24, C-20: a resource that its alias lost is removed once, also if the client rejects two responses that had brought it.
#[test]
fn rejected_twice_and_gone_by_its_alias() {
    delta(
        "
        origin put sds s@1:aka=t
        client subscribe sds s x
        client <- sds [s@1:aka=t] -[x]
        client sends sds +t -s
        client <- sds [s@1:aka=t]
        origin drop sds s
        client sends sds n1 !
        client <- sds -[s x]
        client sends sds n2 !
        nothing
        client sends sds n3
        client <- sds -[t], ack
        nothing for 2s
        ",
    );
}

/// B-22, C-20: a client that rejects content which its alias lost may keep the content before, also if a wildcard had brought it and
/// has ended.
#[test]
fn kept_by_its_alias_after_the_wildcard() {
    delta(
        "
        origin put sds s@1:aka=t
        client subscribe sds * t
        client <- sds [s@1:aka=t], ack
        origin put sds s@2
        client <- sds [s@2] -[t]
        client sends sds -*
        nothing
        client sends sds n2 !
        client <- sds -[s t], ack
        nothing for 2s
        ",
    );
}

/// B-22, C-08, C-20: a removed name that a later response brought has changed, also for a client that now asks for it by its alias
/// alone.
#[test]
fn a_rejected_removal_that_came_again_for_an_alias() {
    delta(
        "
        origin put sds a@1
        client subscribe sds a b
        client <- sds [a@1] -[b]
        origin put sds b@1:aka=nick
        client sends sds +b
        client <- sds [b@1:aka=nick]
        client sends sds +nick -b
        client <- sds [b@1:aka=nick]
        client sends sds n1 ! => nack
        client sends sds n2
        client sends sds n3
        client <- sds [a@1], ack
        nothing for 2s
        ",
    );
}

/// B-22: a member that a later response removed has changed, even if the client accepted that removal, gave the name up and asked
/// for it again before it rejects the older response: the other members are sent again.
#[test]
fn rejected_after_a_member_was_removed_and_asked_for_again() {
    delta(
        "
        origin put eds a@1 b@1
        other put eds a@1 b@1, silent eds
        client subscribe eds a b
        client <- eds [a@1 b@1]
        origin drop eds a
        client sends eds +a
        client <- eds -[a]
        client sends eds n2 => ack
        client sends eds -a
        client moves other
        client sends eds +a
        client sends eds n1 ! => nack
        nothing
        other speaks
        client <- eds [a@1 b@1], ack
        nothing for 2s
        ",
    );
}

/// B-22: who accepts that a name is gone holds nothing of it, though an older response that brought it is still unanswered. So a later
/// rejection of the same removal frees nothing.
#[test]
fn rejected_after_the_same_removal_was_accepted() {
    delta(
        "
        origin put eds a@1
        client subscribe eds a
        client <- eds [a@1]
        origin drop eds a
        client sends eds +a
        client <- eds -[a]
        client sends eds +a
        client <- eds -[a]
        client sends eds +a +xdstp://
        client <- eds -[a xdstp://]
        client sends eds n2 ! => nack
        client sends eds n3 => ack
        client sends eds n4 ! => nack
        nothing for 2s
        ",
    );
}

/// B-22: the same for a removal: a member that a later response brought has changed, even if the client gave it up and was told once
/// more that it is gone before it rejects the older response.
#[test]
fn rejected_after_a_member_came_back_and_was_gone_again() {
    delta(
        "
        origin put eds a@1 b@1
        client subscribe eds a b
        client <- eds [a@1 b@1], ack
        origin drop eds a b
        client <- eds -[a b]
        origin put eds a@2
        client sends eds +a
        client <- eds [a@2]
        client sends eds n3 => ack
        client sends eds -a
        origin drop eds a
        client sends eds +a
        client <- eds -[a]
        client sends eds n4 => ack
        client sends eds n2 ! => nack
        client <- eds -[b], ack
        nothing for 2s
        ",
    );
}

/// B-16, B-22: a removed name that is asked for again has not changed, though an older response with it is still unanswered: the
/// other members are not told again.
#[test]
fn rejected_after_a_removed_name_was_asked_for_again() {
    delta(
        "
        origin put eds a@1
        client subscribe eds a
        client <- eds [a@1]
        origin drop eds a
        client sends eds +a +x
        client <- eds -[a x]
        client stalls
        client sends eds -a
        client sends eds +a
        client sends eds n2 ! => nack
        client reads
        client <- eds -[a], ack
        nothing for 2s
        ",
    );
}
