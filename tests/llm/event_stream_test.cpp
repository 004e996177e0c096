// Server-sent events, however their bytes are cut.

#include "llm/event_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "support/scenario.h"

namespace watchdog {
namespace {

using Events = std::vector<std::string>;

/// The data of all events, with the text fed in pieces of the sizes that `next` gives.
Events events_of(std::string_view text, const auto& next) {
  EventStream stream(1'000);
  Events events;
  const auto feed = [&](std::string_view data) {
    events.emplace_back(data);
    return true;
  };
  while (!text.empty()) {
    const auto piece = text.substr(0, next());
    EXPECT_EQ(stream.feed(piece, feed), EventStream::Fed::more);
    text.remove_prefix(piece.size());
  }
  EXPECT_EQ(stream.end(feed), EventStream::Fed::more);
  return events;
}

struct Row {
  const char* what;
  std::string text;
  Events events;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"newlines", "data: a\n\ndata: b\n\n", {"a", "b"}},
      {"returns and newlines", "data: a\r\n\r\ndata: b\r\n\r\n", {"a", "b"}},
      {"returns alone", "data: a\r\rdata: b\r\r", {"a", "b"}},
      {"all kinds of them", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", {"a", "b", "c"}},
      {"a comment is nothing", ":\n\n: ping\n\ndata: a\n\n:\n\n", {"a"}},
      {"lines of one event are joined", "data: a\ndata:b\ndata\ndata:  c\n\n", {"a\nb\n\n c"}},
      {"other fields are nothing", "event: x\nid: 1\nretry: 5\ndata: a\n\nevent: y\n\n", {"a"}},
      {"a byte order mark at the beginning",
       "\xEF\xBB\xBF"
       "data: a\n\n",
       {"a"}},
      {"none later",
       "data: a\n\n\xEF\xBB\xBF"
       "data: b\n\ndata: c\n\n",
       {"a", "c"}},
      {"an event without data is none", "event: x\n\ndata:\n\ndata: a\n\n", {"a"}},
      {"the last newlines may be missing", "data: a\n\ndata: b", {"a", "b"}},
      {"one of them too", "data: a\n\ndata: b\n", {"a", "b"}},
      {"an error as a field", "error: {\"code\":500}\n\n", {"{\"code\":500}"}},
      {"an object as a line", "data: a\n\n{\"error\":\"x\"}\n", {"a", "{\"error\":\"x\"}"}},
      {"many bytes a letter", "data: 中文\n\n", {"中文"}},
      {"nothing", "", {}},
      {"only newlines", "\n\r\n\r\n\n", {}},
  };
  return all;
}

TEST(EventStream, events_are_found_in_one_piece_and_byte_by_byte) {
  for (const Row& row : rows()) {
    EXPECT_EQ(events_of(row.text, [] { return 1'000; }), row.events) << row.what;
    EXPECT_EQ(events_of(row.text, [] { return 1; }), row.events) << row.what;
  }
}

TEST(EventStream, events_are_found_however_the_bytes_are_cut) {
  std::mt19937 random(test::random_seed());
  for (int round = test::repetitions(2'000); round > 0; --round) {
    for (const Row& row : rows()) {
      ASSERT_EQ(events_of(row.text, [&] { return 1 + random() % 9; }), row.events) << row.what;
    }
  }
}

TEST(EventStream, a_line_or_an_event_without_end_is_refused) {
  const auto none = [](std::string_view) {
    ADD_FAILURE();
    return true;
  };
  EventStream line(100);
  EXPECT_EQ(line.feed("data: " + std::string(94, 'x'), none), EventStream::Fed::more);
  EXPECT_EQ(line.feed("x", none), EventStream::Fed::too_large);

  EventStream event(100);
  EXPECT_EQ(event.feed("data: " + std::string(60, 'x') + "\n", none), EventStream::Fed::more);
  EXPECT_EQ(event.feed("data: " + std::string(60, 'x') + "\n", none), EventStream::Fed::too_large);

  EventStream comment(100);
  EXPECT_EQ(comment.feed(":" + std::string(100, 'x'), none), EventStream::Fed::too_large);
}

TEST(EventStream, no_event_is_reported_after_the_reader_has_enough) {
  EventStream stream(100);
  int reported = 0;
  const auto once = [&](std::string_view) {
    ++reported;
    return false;
  };
  EXPECT_EQ(stream.feed("data: a\n\ndata: b\n\n", once), EventStream::Fed::enough);
  EXPECT_EQ(reported, 1);
}

}  // namespace
}  // namespace watchdog
