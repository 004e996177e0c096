// Whatever a program prints, no control or bidirectional character of it reaches a terminal, and
// lines and progress are the same however it is cut. A recorded run may have any bytes.

#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "codec/json.h"
#include "fuzz/fuzz.h"
#include "ingest/trace.h"
#include "text/utf8.h"
#include "watchdog/terminal_text.h"
#include "wrapper/lines.h"
#include "wrapper/recognition.h"
#include "wrapper/terminal_progress.h"

using namespace watchdog;
using namespace watchdog::monitor;

std::vector<std::string> fuzz_seeds() {
  return {"\x1b]9;4;1;50\a\x1b]9;4;3\x1b\\ \x1b[31mred\x1b[0m\r\n",
          "a\xc2\x9b"
          "b\xe2\x80\xae"
          "c\xe2\x80\xa8"
          "d\xc2\x85"
          "e\xef\xbb\xbf"
          "f\xf3\xa0\x81\x81\x9b",
          "{\"kind\":\"heartbeat\",\"iteration\":3}\n{\"kind\":\"tool_call\",\"name\":\"x\"}\n",
          "step 1 of 10\rstep 2 of 10\n\n100%\n", "{\"a\":\"\xe2\x80\xae\\u202e\"}"};
}

namespace {

bool is_plain(std::string_view text) {
  if (!is_utf8(text)) return false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) return false;
    const auto next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0U;
    const auto third = at + 2 < text.size() ? static_cast<unsigned char>(text[at + 2]) : 0U;
    if (byte == 0xc2 && next < 0xa0) return false;  // C1
    const bool turns = third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae);
    if (byte == 0xe2 && next == 0x80 && turns) return false;
    if (byte == 0xe2 && next == 0x81 && third >= 0xa6 && third <= 0xa9) return false;
  }
  return true;
}

void try_trace(std::string_view text) {
  static const int file = ::memfd_create("trace", MFD_CLOEXEC);
  FUZZ_REQUIRE(file >= 0 && ::ftruncate(file, 0) == 0);
  FUZZ_REQUIRE(::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  auto trace = Trace::open("/proc/self/fd/" + std::to_string(file));
  FUZZ_REQUIRE(trace.ok());
  for (auto line = trace->next(); line && *line; line = trace->next())
    FUZZ_REQUIRE((*line)->line >= 1);
}

}  // namespace

void try_input(std::string_view text) {
  FUZZ_REQUIRE(is_plain(terminal_text(text)));
  FUZZ_REQUIRE(terminal_text(terminal_text(text)) == terminal_text(text));
  const auto line = terminal_line(text);
  FUZZ_REQUIRE(is_plain(line) && line.find('\n') == line.npos && line.find('\t') == line.npos);
  if (is_json(text)) FUZZ_REQUIRE(is_json(terminal_json(text)) && is_plain(terminal_json(text)));

  std::string all;
  LineReader lines;
  const auto feed = [&](std::string_view one) { all.append(one).append("|"); };
  same_in_pieces(
      text,
      [&] {
        all.clear();
        lines = {};
      },
      [&](std::string_view piece) {
        lines.feed(piece, feed);
        return true;
      },
      [&] {
        lines.finish(feed);
        return all;
      });
  std::optional<TerminalProgress> newest;
  ProgressSequence progress;
  same_in_pieces(
      text,
      [&] {
        newest.reset();
        progress = {};
      },
      [&](std::string_view piece) {
        if (const auto found = progress.feed(piece)) newest = found;
        return true;
      },
      [&] {
        if (!newest) return std::string("none");
        FUZZ_REQUIRE(newest->percent >= 0 && newest->percent <= 100);
        return std::string(name_of(newest->state)) + std::to_string(newest->percent);
      });
  static const auto recognition = *Recognition::of({"step ([0-9]+)"}, true);
  if (const auto event = recognition.event_in(text)) FUZZ_REQUIRE(event->kind != ReportKind::start);
  (void)recognition.finds(text);
  try_trace(text);
}
