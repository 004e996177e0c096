// An agent outside this project: knows the installed package and nothing else.

#include <watchdog/store_reader.h>
#include <watchdog/tracker.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "Usage: consumer DATABASE\n";
    return 2;
  }
  {
    watchdog::ProgressTracker tracker({.session = "s", .database = argv[1]});
    tracker.heartbeat({.iteration = 1});
    tracker.tool_call("read_file", R"({"path":"a.txt"})", "1");
    tracker.tool_result("read_file", "the text", "1");
    tracker.state_change("file_read");
    if (!tracker.complete()) return 1;
  }
  auto reader = watchdog::StoreReader::open(argv[1]);
  if (!reader) return 1;
  const auto row = reader->session("s");
  if (!row || row->lifecycle != watchdog::Lifecycle::completed) return 1;
  const auto page = reader->page(row->key, 0, 100);
  if (!page || page->events.back().report.kind != watchdog::ReportKind::end) return 1;
  std::cout << "ok: " << page->events.size() << " events\n";
}
