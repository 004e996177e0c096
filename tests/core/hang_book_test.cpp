// Which hangs are looked at: each request once, and a process again only after something there has
// moved.
#include "core/hang_book.h"

#include <gtest/gtest.h>

#include "api/hang_diagnosis.h"

namespace watchdog::monitor {
namespace {

using RequestNames = std::set<std::string>;
constexpr ProcessId process{4711, 100};
const std::string here = "http://127.0.0.1:8080";

TEST(HangBook, a_request_waits_from_its_hang_until_it_is_handled_or_moves) {
  HangBook book;
  for (const auto state : {ServerState::unknown, ServerState::queued, ServerState::quiet,
                           ServerState::gone, ServerState::restarted})
    book.found(here, "a", state);
  EXPECT_TRUE(book.waiting().empty());
  book.found(here, "a", ServerState::hung);
  book.found(here, "a", ServerState::hung);
  book.found(here, "b", ServerState::hung);
  book.found("http://elsewhere", "a", ServerState::hung);
  EXPECT_EQ(book.waiting().at(here), (RequestNames{"a", "b"}));
  book.handled(here, {"a", "unknown"});
  book.found(here, "a", ServerState::hung);
  EXPECT_EQ(book.waiting().at(here), RequestNames{"b"}) << "it is looked at once";
  book.found(here, "b", ServerState::over);
  EXPECT_FALSE(book.waiting().contains(here));
  EXPECT_EQ(book.waiting().at("http://elsewhere"), RequestNames{"a"});
  book.found(here, "a", ServerState::reading);
  book.found(here, "a", ServerState::hung);
  EXPECT_EQ(book.waiting().at(here), RequestNames{"a"}) << "it is another hang";
}

TEST(HangBook, a_process_is_looked_at_again_after_something_there_moved) {
  HangBook book;
  EXPECT_FALSE(book.was_looked_at(here, process));
  book.looks_at(here, process);
  EXPECT_TRUE(book.was_looked_at(here, process));
  EXPECT_FALSE(book.was_looked_at(here, {4711, 101})) << "another process has its number";
  for (const auto state : {ServerState::hung, ServerState::queued, ServerState::quiet,
                           ServerState::unknown, ServerState::loading})
    book.found(here, "b", state);
  book.found("http://elsewhere", "c", ServerState::writing);
  EXPECT_TRUE(book.was_looked_at(here, process));
  for (const auto state : {ServerState::reading, ServerState::writing, ServerState::working}) {
    book.looks_at(here, process);
    book.found(here, "c", state);
    EXPECT_FALSE(book.was_looked_at(here, process)) << name_of(state);
  }
}

TEST(HangBook, it_is_bounded_and_gives_up_a_request_that_no_session_has) {
  HangBook book;
  for (int number = 0; number < 1'000; ++number)
    book.found(here, std::to_string(number), ServerState::hung);
  EXPECT_EQ(book.waiting().at(here).size(), HangBook::requests_max);
  const auto all = book.waiting().at(here);
  for (int round = 1; round < HangBook::rounds_max; ++round) book.wait_for(here, all);
  EXPECT_EQ(book.waiting().at(here), all);
  book.wait_for(here, all);
  EXPECT_TRUE(book.waiting().empty());
  book.found(here, "new", ServerState::hung);
  EXPECT_EQ(book.waiting().at(here), RequestNames{"new"}) << "handled ones make room";
}

TEST(HangDiagnosis, the_process_is_put_into_each_word) {
  EXPECT_EQ(command_for({"gdb", "-p", "{pid}", "x={pid},y={pid}{pid}", "{PID}", ""}, 42),
            (std::vector<std::string>{"gdb", "-p", "42", "x=42,y=4242", "{PID}", ""}));
}

TEST(HangDiagnosis, no_half_of_a_line_stays_where_output_is_left_out) {
  EXPECT_EQ(printed_text("one\ntwo", "\nthree", 13), "one\ntwo\nthree");
  EXPECT_EQ(printed_text("one\ntok", "en\nthree\n", 1'000),
            "one\n… 990 bytes are left out\nthree\n");
  EXPECT_EQ(printed_text("no line", "ends", 500), "… 500 bytes are left out\n");
  EXPECT_EQ(printed_text("", "", 0), "");
}

}  // namespace
}  // namespace watchdog::monitor
