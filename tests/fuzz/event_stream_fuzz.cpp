// However a stream of server-sent events or JSON lines is cut, each of its readers finds the same
// in it, keeps its bound, and the proxy's filter takes nothing away.

#include <optional>
#include <utility>

#include "core/sse_reader.h"
#include "fuzz/fuzz.h"
#include "llm/event_stream.h"
#include "proxy/connection/answer_filter.h"

using watchdog::EventStream;
using watchdog::monitor::AnswerFilter;
using watchdog::monitor::SseReader;
using watchdog::monitor::SseRecord;

std::vector<std::string> fuzz_seeds() {
  return {"data: {\"a\":1}\n\n",
          "event: health\nid: 7\ndata: {\"health\":\"stuck\"}\n\n",
          ": keep-alive\n\n",
          "data:one\r\ndata: two\r\n\r\n",
          "data\rdata: \r\r",
          "event: ping\ndata: {\"type\":\"ping\"}\n\n",
          "{\"error\":\"no\"}\nerror: {}\n\n",
          "data: {\"prompt_progress\":{\"total\":9,\"cache\":1,\"processed\":4}}\n\n",
          "{\"message\":{\"content\":\"Hi\"},\"done\":true}\n\n",
          "\xEF\xBB\xBF",
          "id: 1\nid\n:\nretry: 3\n"};
}

namespace {

constexpr std::size_t event_bytes_max = 300;

void try_event_stream(std::string_view text) {
  std::string found;
  std::optional<EventStream> stream;
  auto fed = EventStream::Fed::more;
  const auto sink = [&](std::string_view data) {
    FUZZ_REQUIRE(!data.empty() && data.size() <= event_bytes_max);
    found.append(data).append("|");
    return !data.ends_with("enough");
  };
  same_in_pieces(
      text,
      [&] {
        found.clear();
        stream.emplace(event_bytes_max);
      },
      [&](std::string_view piece) {
        fed = stream->feed(piece, sink);
        return fed == EventStream::Fed::more;
      },
      [&] {
        if (fed == EventStream::Fed::more) fed = stream->end(sink);
        return found + std::to_string(static_cast<int>(std::exchange(fed, {})));
      });
}

void try_sse_reader(std::string_view text) {
  std::string found;
  SseReader reader;
  const auto reported = [&](const SseRecord& record) {
    FUZZ_REQUIRE(!record.data.empty() && record.data.find('\n') == std::string::npos);
    found.append(record.event).append("=").append(record.data).append("|");
    return true;
  };
  same_in_pieces(
      text,
      [&] {
        found.clear();
        reader = {};
      },
      [&](std::string_view piece) { return reader.feed(piece, reported); },
      [&] { return found + reader.last_id(); });
}

void try_filter(std::string_view text, AnswerFilter::Form form, AnswerFilter::Progress progress) {
  const bool hides =
      form == AnswerFilter::Form::events && progress == AnswerFilter::Progress::hidden;
  std::string passed;
  AnswerFilter filter;
  same_in_pieces(
      text,
      [&] {
        passed.clear();
        filter = AnswerFilter(form, progress);
      },
      [&](std::string_view piece) {
        passed += filter.pass(std::string(piece));
        return true;
      },
      [&] {
        passed += filter.rest();
        FUZZ_REQUIRE(hides || passed == text);
        FUZZ_REQUIRE(filter.pieces() >= 0 && filter.prompt_read() >= 0);
        // Of bytes that mean nothing each piece counts.
        if (form == AnswerFilter::Form::opaque) return passed;
        return passed + "|" + std::to_string(filter.pieces()) + "|" +
               std::to_string(filter.prompt_read()) + "|" + std::to_string(filter.prompt_tokens());
      });
}

}  // namespace

void try_input(std::string_view input) {
  try_event_stream(input);
  try_sse_reader(input);
  for (const auto form :
       {AnswerFilter::Form::opaque, AnswerFilter::Form::events, AnswerFilter::Form::lines}) {
    for (const auto progress : {AnswerFilter::Progress::none, AnswerFilter::Progress::passed,
                                AnswerFilter::Progress::hidden})
      try_filter(input, form, progress);
  }
}
