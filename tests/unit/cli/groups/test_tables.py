"""The tables of kafka-consumer-groups, to the blank."""

from __future__ import annotations

from moldau.cli.groups.tables import (
    listing_lines,
    member_lines,
    offset_lines,
    offset_rows,
    reset_lines,
    state_lines,
)
from moldau.client.admin import Node
from moldau.client.groups import CommittedOffset, GroupDescription, GroupListing, GroupMember
from moldau.core.ids import TopicPartition

NODE = Node(0, "localhost", 9092)
FIRST, SECOND, THIRD = (TopicPartition("first_topic", number) for number in range(3))
BUSY = GroupMember(member_id="consumer-1", client_id="c1", host="/127.0.0.1", assignment=(FIRST, SECOND))
IDLE = GroupMember(member_id="consumer-2", client_id="c2", host="/127.0.0.1")


def group(*members: GroupMember, state: str = "Stable", epoch: int | None = None) -> GroupDescription:
    return GroupDescription(
        group_id="g", state=state, coordinator=NODE, assignor="range", members=members, epoch=epoch, target_epoch=epoch
    )


def test_rows_of_the_busiest_member_come_first_and_those_without_a_reader_last() -> None:
    other = GroupMember(member_id="a", client_id="c", host="/h", assignment=(THIRD,))
    committed = {FIRST: CommittedOffset(5), TopicPartition("aaa", 0): CommittedOffset(1)}
    rows = offset_rows(group(other, BUSY, IDLE), committed, {FIRST: 9})
    assert [(row.partition, row.member) for row in rows] == [
        (FIRST, BUSY),
        (SECOND, BUSY),
        (THIRD, other),
        (TopicPartition("aaa", 0), None),
    ]
    assert [row.lag for row in rows] == [4, None, None, None]


def test_offsets_are_laid_out_with_dashes_for_what_is_not_known() -> None:
    rows = offset_rows(group(BUSY), {FIRST: CommittedOffset(5, 0)}, {FIRST: 7, SECOND: 8})
    assert offset_lines("g", rows, is_verbose=False) == [
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     HOST            CLIENT-ID",
        "g               first_topic     0          5               7               2               "
        "consumer-1      /127.0.0.1      c1",
        "g               first_topic     1          -               8               -               "
        "consumer-1      /127.0.0.1      c1",
    ]
    verbose = offset_lines("g", rows, is_verbose=True)
    assert verbose[0].startswith("GROUP           TOPIC           PARTITION  LEADER-EPOCH    CURRENT-OFFSET ")
    assert verbose[1].startswith("g               first_topic     0          0               5 ")
    assert verbose[2].startswith("g               first_topic     1          -               - ")


def test_columns_grow_with_their_content() -> None:
    long = GroupMember(member_id="m" * 20, client_id="c", host="/h", assignment=(FIRST,))
    lines = offset_lines("a" * 18, offset_rows(group(long), {}, {}), is_verbose=False)
    assert lines[0].index("TOPIC") == 19
    assert lines[1].index("/h") == lines[0].index("HOST")


def test_members_are_listed_with_instances_where_there_are_some() -> None:
    assert member_lines(group(BUSY, IDLE), is_verbose=False) == [
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     ",
        "g               consumer-1      /127.0.0.1      c1              2               ",
        "g               consumer-2      /127.0.0.1      c2              0               ",
    ]
    static = GroupMember(member_id="m", client_id="c", host="/h", instance_id="i")
    assert member_lines(group(static), is_verbose=False) == [
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     ",
        "g               m               i                 /h              c               0               ",
    ]


def test_verbose_members_show_epochs_and_assignments() -> None:
    other = TopicPartition("zzz", 0)
    member = GroupMember(member_id="m", client_id="c", host="/h", assignment=(SECOND, FIRST, other), epoch=3)
    head, line = member_lines(group(member, epoch=4), is_verbose=True)
    assert head.split()[-4:] == ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    assert line.split()[-5:] == ["3", "3", "first_topic:0,1;zzz:0", "4", "-"]
    assert len(head) == len(line)


def test_a_group_between_protocols_shows_who_has_moved() -> None:
    old = GroupMember(member_id="a", client_id="c", host="/h", is_upgraded=False)
    new = GroupMember(member_id="b", client_id="c", host="/h", is_upgraded=True)
    lines = member_lines(group(old, new), is_verbose=True)
    assert [line.split()[-1] for line in lines] == ["UPGRADED", "false", "true"]
    assert member_lines(group(new), is_verbose=True)[0].split()[-1] == "TARGET-ASSIGNMENT"


def test_the_state_names_the_coordinator() -> None:
    assert state_lines(group(BUSY), is_verbose=False) == [
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS",
        "g               localhost:9092  (0)       range                Stable               1",
    ]
    assert state_lines(group(epoch=5), is_verbose=True) == [
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                GROUP-EPOCH     "
        "TARGET-ASSIGNMENT-EPOCH   #MEMBERS",
        "g               localhost:9092  (0)       range                Stable               5               "
        "5                         0",
    ]


def test_a_listing_has_the_columns_asked_for() -> None:
    listings = [GroupListing("g", "Classic", "Empty", "consumer")]
    assert listing_lines(listings, shows_type=True, shows_state=True) == [
        f"{'GROUP':<25} {'TYPE':<20} {'STATE':<20}",
        f"{'g':<25} {'Classic':<20} {'Empty':<20}",
    ]
    assert listing_lines([], shows_type=False, shows_state=True) == [f"{'GROUP':<25} {'STATE':<20}"]


def test_a_reset_is_shown_in_fixed_columns() -> None:
    assert reset_lines({"g": {SECOND: 3, FIRST: 5}}) == [
        "GROUP                          TOPIC                          PARTITION  NEW-OFFSET     ",
        "g                              first_topic                    0          5              ",
        "g                              first_topic                    1          3              ",
    ]
