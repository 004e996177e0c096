// Rules that hold for the source tree as a whole: which layer may include which, and a few habits.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace watchdog {
namespace {

namespace fs = std::filesystem;
using Set = std::set<std::string, std::less<>>;

// Includes point down: whom each folder of sources may include besides itself.
const std::map<std::string, Set, std::less<>> may_include = {
    {"base", {}},
    {"progress", {"base"}},
    {"json", {"base", "progress"}},
    {"http", {"base"}},
    {"store", {"base", "progress", "json"}},
    {"tools", {"base", "progress", "json", "http"}},
    {"llm", {"base", "progress", "json", "http"}},
    {"tracker", {"base", "progress", "json", "store"}},
    {"c", {"base", "progress", "json", "store", "tracker"}},
    {"wait", {"base", "progress", "json", "store", "tracker"}},
    {"run", {"base", "progress", "json", "http", "store", "tools", "llm", "tracker"}},
    {"config", {"base", "progress", "json", "http", "store", "tools", "llm", "tracker", "run"}},
    {"support", {}},  // of the tests; the demo's model is made of it
    {"examples", {"support"}},
    {"monitor/ingest", {}},              // what others say, as reports
    {"monitor/api", {"monitor/ingest"}},  // requests and responses, no socket
    {"monitor/http", {"monitor/api", "monitor/ingest"}},
    {"monitor/watch", {"monitor/api", "monitor/http", "monitor/ingest"}},
    {"monitor/run", {}},  // a command and its terminal
    // between agents and their model's server
    {"monitor/proxy", {"monitor/api", "monitor/http", "monitor/ingest"}},
    {"monitor/cli",
     {"monitor/api", "monitor/http", "monitor/watch", "monitor/ingest", "monitor/run",
      "monitor/proxy"}},
    {"monitor",
     {"monitor/api", "monitor/http", "monitor/watch", "monitor/ingest", "monitor/run",
      "monitor/proxy", "monitor/cli"}},
};

// A public header belongs to the layer of the source that implements it. The monitor and the
// examples may include all of them.
const std::map<std::string, std::string, std::less<>> layer_of_header = {
    {"content.h", "base"},
    {"digest.h", "base"},
    {"redaction.h", "base"},
    {"ids.h", "base"},
    {"names.h", "base"},
    {"policy.h", "base"},
    {"reasons.h", "base"},
    {"report.h", "base"},
    {"result.h", "base"},
    {"session.h", "base"},
    {"time.h", "base"},
    {"alert_rule.h", "progress"},
    {"alerts.h", "store"},
    {"pace.h", "progress"},
    {"pattern.h", "base"},
    {"repetition.h", "progress"},
    {"history.h", "progress"},
    {"health.h", "progress"},
    {"case.h", "progress"},
    {"forget_request.h", "json"},
    {"json.h", "json"},
    {"json_writer.h", "json"},
    {"progress.h", "json"},
    {"audit.h", "base"},
    {"bell.h", "store"},
    {"observer.h", "store"},
    {"store.h", "store"},
    {"store_reader.h", "store"},
    {"tracker.h", "tracker"},
    {"text_loop.h", "progress"},
    {"wait_rule.h", "progress"},
    {"server_evidence.h", "progress"},
    {"server_probe.h", "llm"},
    {"wait.h", "wait"},
    {"termination.h", "wait"},
    {"gtest.h", "wait"},
    {"watchdog.h", "c"},
    {"budget.h", "base"},
    {"failure.h", "base"},
    {"http_client.h", "http"},
    {"url.h", "http"},
    {"web_request.h", "http"},
    {"answer_stream.h", "llm"},
    {"model_request.h", "llm"},
    {"model.h", "llm"},
    {"model_client.h", "llm"},
    {"checks.h", "run"},
    {"old_limits.h", "run"},
    {"plan.h", "run"},
    {"run.h", "run"},
    {"task_tool.h", "run"},
    {"regular_file.h", "config"},
    {"settings.h", "config"},
    {"budget_report.h", "tracker"},
    {"subprocess.h", "tools"},
    {"artifact_store.h", "tools"},
    {"tool_output.h", "tools"},
    {"checkpoint_store.h", "tools"},
    {"workspace.h", "tools"},
    {"deadline.h", "tools"},
    {"descendants.h", "tools"},
    {"cancel_scope.h", "tools"},
    {"tool_outcome.h", "tools"},
    {"tool.h", "tools"},
    {"write_gate.h", "tools"},
    {"turns.h", "tools"},
    {"executor.h", "tools"},
    {"workspace_tools.h", "tools"},
    {"tool_runner.h", "run"},
};

// What not everybody may include, and who may. The library's public headers include none of it.
const std::map<std::string, Set, std::less<>> foreign = {
    {"xxhash.h", {"base"}},
    {"sqlite3.h", {"store"}},
    {"nlohmann/",
     {"json", "llm", "tools", "run", "config", "examples", "monitor/ingest", "monitor/proxy",
      "monitor/cli"}},
    {"toml++/", {"config"}},
    {"openssl/", {"http", "tools", "monitor/api", "monitor/proxy"}},
    {"boost/asio/",
     {"http", "tools", "llm", "run", "monitor/http", "monitor/watch", "monitor/proxy",
      "monitor/cli"}},
    {"boost/asio/ip/", {"http", "monitor/http", "monitor/proxy"}},
    {"boost/beast/", {"http", "monitor/http", "monitor/proxy"}},
    {"sys/socket.h", {"store", "tools", "monitor/http", "monitor/watch", "monitor/run"}},
    {"sys/un.h", {"store", "tools", "monitor/http", "monitor/watch"}},
    {"netinet/", {"monitor/http", "monitor/proxy"}},
    {"arpa/", {"monitor/http"}},
    {"netdb.h", {"monitor/http"}},
};

struct Source {
  std::string path;  // from the root of the project
  std::vector<std::string> lines;

  [[nodiscard]] std::string at(std::size_t line) const {
    return path + ":" + std::to_string(line + 1);
  }
  [[nodiscard]] bool is_cpp() const { return path.ends_with(".cpp") || path.ends_with(".h"); }
  [[nodiscard]] bool is_public() const { return path.starts_with("libwatchdog/include/watchdog/"); }
};

std::vector<Source> read_sources() {
  const Set extensions{".cpp",  ".h",   ".py",    ".sh",  ".js", ".css",
                       ".html", ".sql", ".cmake", ".txt", ""};
  const fs::path root = PROJECT_ROOT;
  std::vector<Source> sources;
  for (const char* top : {"libwatchdog", "monitor", "tests", "scripts", "schemas", "cmake"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const fs::path path = fs::relative(entry.path(), root);
      if (!entry.is_regular_file() || !extensions.contains(path.extension().string())) continue;
      if (path.generic_string().starts_with("tests/data/")) continue;
      Source source{path.generic_string(), {}};
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = read_sources();
  return all;
}

/// The folder in the table that a source of the library or the monitor belongs to.
std::string layer_of(const std::string& path) {
  static const std::regex header("libwatchdog/include/(?:watchdog/)?([^/]+)");
  static const std::regex folder("(?:libwatchdog/src/|libwatchdog/(?=examples/))([^/]+)/.*");
  static const std::regex monitor("(monitor(?:/[^/]+)?)/[^/]+");
  std::smatch found;
  if (std::regex_match(path, found, header)) {
    const auto layer = layer_of_header.find(found.str(1));
    return layer == layer_of_header.end() ? path : layer->second;
  }
  if (std::regex_match(path, found, folder) || std::regex_match(path, found, monitor))
    return found.str(1);
  return path;
}

struct Include {
  std::string name;
  bool quoted = false;
  bool from_monitor = false;
};

/// The folder of the table that an include leads to; empty: none (a generated header, one beside
/// the source, or a foreign one).
std::string target_of(const Include& include) {
  const auto slash = include.name.find('/');
  if (slash == std::string::npos) return "";
  const std::string folder = include.name.substr(0, slash);
  if (folder == "watchdog") return layer_of("libwatchdog/include/" + include.name);
  if (!include.quoted) return "";
  return include.from_monitor && may_include.contains("monitor/" + folder) ? "monitor/" + folder
                                                                           : folder;
}

/// What an include does wrong, or nothing.
std::optional<std::string> fault(const Source& source, const Include& include) {
  const std::string from = layer_of(source.path);
  const auto kept_from = [&](const auto& row) {
    return include.name.starts_with(row.first) &&
           (source.is_public() || !row.second.contains(from));
  };
  if (std::ranges::any_of(foreign, kept_from)) return from + " must not include " + include.name;
  const std::string to = target_of(include);
  if (to.empty()) return {};
  if (!may_include.contains(to)) return include.name + " is not in the table of layers";
  const bool to_public = include.name.starts_with("watchdog/");
  if (source.is_public() && !to_public) return "a public header must not include a private one";
  if (to == from) return {};
  if (include.from_monitor || from == "examples") {
    if (to_public || may_include.at(from).contains(to)) return {};
    return from + " must not include " + to + ", and the library only by include/watchdog";
  }
  if (may_include.at(from).contains(to)) return {};
  return from + " must not include " + to;
}

/// Everything a source does wrong with its includes, each as "file:line: rule".
std::vector<std::string> faults(const Source& source) {
  if (!may_include.contains(layer_of(source.path)))
    return {source.at(0) + ": is in no folder of the table of layers"};
  static const std::regex directive(R"re(\s*#\s*include\s*([<"])([^">]+)[">].*)re");
  std::vector<std::string> found;
  for (std::size_t line = 0; line < source.lines.size(); ++line) {
    std::smatch match;
    if (!std::regex_match(source.lines[line], match, directive)) continue;
    const auto wrong = fault(source, {.name = match.str(2),
                                      .quoted = match.str(1) == "\"",
                                      .from_monitor = source.path.starts_with("monitor/")});
    if (wrong) found.push_back(source.at(line) + ": " + *wrong);
  }
  return found;
}

void expect_no_line(std::string_view text, const auto& in) {
  for (const Source& source : sources()) {
    if (!in(source)) continue;
    for (std::size_t line = 0; line < source.lines.size(); ++line)
      EXPECT_EQ(source.lines[line].find(text), std::string::npos)
          << source.at(line) << ": " << text;
  }
}

TEST(Layers, includes_point_down) {
  std::size_t looked_at = 0;
  for (const Source& source : sources()) {
    if (!source.is_cpp()) continue;
    if (!source.path.starts_with("libwatchdog/") && !source.path.starts_with("monitor/")) continue;
    ++looked_at;
    for (const std::string& wrong : faults(source)) ADD_FAILURE() << wrong;
  }
  EXPECT_GT(looked_at, 50U) << "the sources were not found under " << PROJECT_ROOT;
}

TEST(Layers, the_table_has_no_cycle) {
  // Each layer's row holds the rows of those in it, and never itself.
  for (const auto& [layer, below] : may_include) {
    EXPECT_FALSE(below.contains(layer)) << layer;
    for (const std::string& lower : below)
      for (const std::string& lowest : may_include.at(lower))
        EXPECT_TRUE(below.contains(lowest)) << layer << " → " << lower << " → " << lowest;
  }
}

TEST(Layers, a_wrong_include_is_named_with_its_line) {
  const Source source{"libwatchdog/src/progress/case.cpp",
                      {"#include \"watchdog/case.h\"", "#include \"json/fields.h\""}};
  EXPECT_EQ(faults(source),
            std::vector<std::string>{source.at(1) + ": progress must not include json"});

  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"libwatchdog/src/base/ids.cpp", "\"watchdog/tracker.h\""},
      {"libwatchdog/src/store/bell.cpp", "\"watchdog/unlisted.h\""},
      {"libwatchdog/src/unlisted/a.cpp", "<string>"},
      {"libwatchdog/src/tracker/tracker.cpp", "<sqlite3.h>"},
      {"libwatchdog/include/watchdog/json.h", "<nlohmann/json.hpp>"},
      {"libwatchdog/include/watchdog/store.h", "\"store/sqlite.h\""},
      {"libwatchdog/include/watchdog/unlisted.h", "<string>"},
      {"libwatchdog/examples/agent.cpp", "\"store/sqlite.h\""},
      {"monitor/api/api.h", "<boost/asio/awaitable.hpp>"},
      {"monitor/cli/demo.cpp", "<boost/asio/ip/tcp.hpp>"},
      {"monitor/api/api.h", "\"http/server.h\""},
      {"monitor/http/server.cpp", "\"store/sqlite.h\""},
      {"monitor/http/server.cpp", "\"../libwatchdog/src/store/sqlite.h\""},
  };
  for (const auto& [path, include] : wrong)
    EXPECT_EQ(faults({path, {std::string("#include ") + include}}).size(), 1U) << path << include;

  const std::vector<std::pair<const char*, const char*>> right = {
      {"libwatchdog/src/store/sqlite.cpp", "\"schema_sql.h\""},
      {"libwatchdog/examples/agent.cpp", "\"watchdog/tracker.h\""},
      {"monitor/http/server.cpp", "\"api/api.h\""},
      {"monitor/http/server.cpp", "<boost/beast/http.hpp>"},
      {"monitor/cli/demo.cpp", "<boost/asio/signal_set.hpp>"},
      {"monitor/main.cpp", "\"watchdog/store.h\""},
  };
  for (const auto& [path, include] : right)
    EXPECT_EQ(faults({path, {std::string("#include ") + include}}).size(), 0U) << path << include;
}

TEST(Habits, a_file_is_named_after_a_noun_of_the_domain) {
  // A model is a language model here, and a noun of the domain; `models` is not.
  static const std::regex empty_name(
      "(.*/)?((util|common|helper|manager|interface|type)s?|models)(_test)?(\\.[a-z]+|/.*)");
  for (const Source& source : sources())
    EXPECT_FALSE(std::regex_match(source.path, empty_name)) << source.path;
}

TEST(Habits, a_name_means_one_class) {
  // Two in one namespace link without a word, and each may be called for the other.
  static const std::regex definition("(?:class|struct) ([A-Za-z]+)(?: final)?(?: : [^;]*)? \\{.*");
  std::map<std::string, std::string> places;
  for (const Source& source : sources()) {
    if (!source.path.starts_with("libwatchdog/") || !source.path.ends_with(".h")) continue;
    for (std::size_t line = 0; line < source.lines.size(); ++line) {
      std::smatch match;
      if (!std::regex_match(source.lines[line], match, definition)) continue;
      const auto [first, is_new] = places.emplace(match.str(1), source.at(line));
      EXPECT_TRUE(is_new) << source.at(line) << ": " << match.str(1) << " is also at "
                          << first->second;
    }
  }
  EXPECT_GT(places.size(), 100U);
}

TEST(Habits, nothing_sleeps) {
  // A benchmark and an example may keep a pace; everything else waits for a condition.
  expect_no_line(
      "sleep_"
      "for(",
      [](const Source& source) {
        return (source.path.starts_with("libwatchdog/") || source.path.starts_with("tests/")) &&
               !source.path.starts_with("libwatchdog/examples/") &&
               !source.path.starts_with("tests/bench/");
      });
}

TEST(Habits, nothing_is_left_for_later) {
  const auto everywhere = [](const Source&) { return true; };
  expect_no_line(
      "TO"
      "DO",
      everywhere);
  expect_no_line(
      "FIX"
      "ME",
      everywhere);
}

TEST(Habits, a_public_header_says_what_it_is) {
  for (const Source& source : sources()) {
    if (!source.is_public()) continue;
    EXPECT_TRUE(!source.lines.empty() && source.lines.front() == "/// \\file") << source.at(0);
    EXPECT_TRUE(std::ranges::count(source.lines, "#pragma once") == 1) << source.path;
  }
}

TEST(Habits, a_file_can_be_read_in_one_sitting) {
  for (const Source& source : sources()) EXPECT_LE(source.lines.size(), 700U) << source.path;
}

TEST(Habits, columns_with_a_unit_or_a_trap_are_explained) {
  static const std::regex column("  ([a-z_]+) (INTEGER|REAL|TEXT|BLOB)\\b.*");
  const auto schema = std::ranges::find(sources(), "schemas/store.sql", &Source::path);
  ASSERT_NE(schema, sources().end());
  // The head of the file may explain a column, or all *_ms at once.
  std::string head;
  for (const std::string& line : schema->lines) {
    if (line.starts_with("CREATE")) break;
    head += line;
  }
  int looked_at = 0;
  for (std::size_t line = 0; line < schema->lines.size(); ++line) {
    std::smatch match;
    if (!std::regex_match(schema->lines[line], match, column)) continue;
    const std::string name = match.str(1);
    const bool time = name.ends_with("_ms");
    if (!time && name != "tick" && name != "prev" && name != "seq") continue;
    ++looked_at;
    EXPECT_TRUE(schema->lines[line].find("--") != std::string::npos ||
                head.find(time ? "*_ms" : name) != std::string::npos)
        << schema->at(line) << ": " << name << " has no comment";
  }
  EXPECT_GT(looked_at, 5);
}

}  // namespace
}  // namespace watchdog
