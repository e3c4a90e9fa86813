"""What pages are cut from is kept while it is what the session holds, for a while, within bounds."""

from __future__ import annotations

from mcp_compact.service.page_cache import KEPT_MS, MOST_BYTES, PageCache, Whole


def whole(size: int = 1) -> Whole:
    return Whole((), "1.0", "", (), size)


def test_what_was_kept_is_found_until_nobody_asked_for_it_for_a_while():
    cache = PageCache()
    cache.keep("a", whole(), 0)
    assert cache.find("a", KEPT_MS) is not None
    assert cache.find("a", 2 * KEPT_MS) is not None
    assert cache.find("a", 3 * KEPT_MS + 1) is None
    assert not cache.kept


def test_a_clock_that_is_set_back_keeps_nothing_for_ever():
    cache = PageCache()
    cache.keep("a", whole(), 10 * KEPT_MS)
    assert cache.find("a", 0) is None


def test_the_oldest_go_where_there_is_no_room_and_what_is_too_large_is_not_kept():
    cache = PageCache()
    cache.keep("a", whole(MOST_BYTES // 2), 0)
    cache.keep("b", whole(MOST_BYTES // 2), 0)
    assert cache.find("a", 1) is not None
    cache.keep("c", whole(MOST_BYTES // 2), 2)
    assert (cache.find("a", 3) is not None, cache.find("b", 3), cache.find("c", 3) is not None) == (True, None, True)
    cache.keep("d", whole(MOST_BYTES + 1), 3)
    assert cache.find("d", 3) is None
