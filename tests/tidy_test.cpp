// Rules that hold for the source tree as a whole: which layer may include which, and a few habits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "layers.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;
using test::may_include;
using test::Set;

// A public header belongs to the layer of the source that implements it. Everybody may include it.
const std::map<std::string, std::string, std::less<>> layer_of_header = {
    {"policy.h", "facts"},        {"reasons.h", "facts"},      {"report.h", "facts"},
    {"result.h", "facts"},        {"session.h", "facts"},      {"time.h", "facts"},
    {"budget.h", "facts"},        {"terminal_text.h", "text"}, {"repetition.h", "judge"},
    {"history.h", "judge"},       {"health.h", "judge"},       {"tracker.h", "report"},
    {"watchdog.h", "report"},     {"wait.h", "wait"},          {"gtest.h", "wait"},
    {"model_client.h", "llm"},    {"run.h", "loop"},           {"tool_runner.h", "loop"},
    {"settings.h", "config"},     {"subprocess.h", "process"}, {"artifact_store.h", "outputs"},
    {"workspace.h", "workspace"}, {"deadline.h", "calls"},     {"tool_outcome.h", "calls"},
    {"tool.h", "calls"},          {"executor.h", "calls"},
};

// The headers of rooms that the monitor and the tools may include besides the public ones.
const Set shared_with_monitor = {
    "calls/movement.h",
    "codec/fields.h",
    "codec/forget_request.h",
    "codec/json.h",
    "codec/json_bounds.h",
    "codec/progress.h",
    "config/channel_kind.h",
    "config/own_names.h",
    "config/toml_leaf.h",
    "facts/agent_tools.h",
    "facts/call_process.h",
    "facts/digest.h",
    "facts/hook_hold.h",
    "facts/ids.h",
    "facts/process.h",
    "facts/role.h",
    "files/durable_file.h",
    "files/open_file.h",
    "files/regular_file.h",
    "files/write_all.h",
    "judge/alert_rule.h",
    "judge/attention.h",
    "judge/changed_at.h",
    "judge/loose_ends.h",
    "judge/source_note.h",
    "judge/text_loop.h",
    "judge/unwell_child.h",
    "llm/answer_stream.h",
    "llm/early_end.h",
    "llm/limit_end.h",
    "llm/model_request.h",
    "llm/provider.h",
    "llm/retry_after.h",
    "llm/server_probe.h",
    "loop/check_subject.h",
    "net/http_client.h",
    "net/url.h",
    "net/web_request.h",
    "observer/observer.h",
    "predict/estimate.h",
    "predict/example.h",
    "predict/model.h",
    "predict/training.h",
    "privacy/content.h",
    "privacy/redaction.h",
    "process/descendants.h",
    "server/server_evidence.h",
    "store/alert_acts.h",
    "store/alerts.h",
    "store/audit.h",
    "store/change_notifier.h",
    "store/event_reader.h",
    "store/event_row.h",
    "store/foreign_database.h",
    "store/lock.h",
    "store/memory_count.h",
    "store/place.h",
    "store/retention.h",
    "store/server.h",
    "store/sharing.h",
    "store/store.h",
    "store/store_reader.h",
    "store/transition_reader.h",
    "store/version.h",
    "text/figures.h",
    "text/interval.h",
    "text/json_writer.h",
    "text/nearest.h",
    "text/time_left.h",
    "text/typed.h",
    "text/utf8.h",
    "text/wildcard.h",
    "wait/account.h",
    "workspace/line_diff.h",
};

// Headers that only some layers may include, with these layers. The library's public headers
// include none of them.
const std::map<std::string, Set, std::less<>> foreign = {
    {"xxhash.h", {"facts"}},
    {"sqlite3.h", {"store"}},
    {"libpq-fe.h", {"monitor/postgres"}},
    {"nlohmann/",
     {"codec",
      "judge",
      "predict",
      "llm",
      "outputs",
      "calls",
      "loop",
      "config",
      "examples",
      "monitor/ingest",
      "monitor/proxy/connection",
      "monitor/proxy/server",
      "monitor/proxy/sessions",
      "monitor/cli",
      "monitor/setup",
      "monitor/export",
      "monitor/follow",
      "monitor/terminal",
      "monitor/mcp",
      "monitor/mcp/proxy",
      "monitor/alerts"}},
    {"toml++/", {"config"}},
    {"openssl/",
     {"net", "files", "calls", "support", "monitor/api", "monitor/cli", "monitor/core",
      "monitor/ingest", "monitor/proxy/connection"}},
    {"boost/asio/",
     {"net", "llm", "loop", "calls", "process", "support", "monitor/http", "monitor/core",
      "monitor/alerts", "monitor/service", "monitor/process", "monitor/proxy/connection",
      "monitor/proxy/server", "monitor/cli"}},
    {"boost/asio/ip/tcp.hpp",
     {"net", "support", "monitor/http", "monitor/process", "monitor/proxy/connection",
      "monitor/proxy/server"}},
    {"boost/beast/", {"net", "monitor/http", "monitor/proxy/connection"}},
    {"sys/socket.h", {"store", "process", "monitor/http", "monitor/service", "monitor/wrapper"}},
    {"sys/un.h", {"store", "process", "monitor/http", "monitor/service"}},
    {"netinet/", {"monitor/http", "monitor/proxy/connection"}},
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
  for (const char* top :
       {"libwatchdog", "monitor", "tests", "tools", "scripts", "schemas", "cmake"}) {
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
  static const std::regex folder(
      "(?:libwatchdog/src/|libwatchdog/examples/(?=support/)|libwatchdog/(?=examples/))"
      "([^/]+)/.*");
  static const std::regex monitor("(monitor(?:/[^/]+)*)/[^/]+");
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
  if (include.name.find('/') == std::string::npos) return "";
  const auto slash = include.from_monitor ? include.name.rfind('/') : include.name.find('/');
  const std::string folder = include.name.substr(0, slash);
  if (folder == "watchdog") return layer_of("libwatchdog/include/" + include.name);
  if (!include.quoted) return "";
  return include.from_monitor && may_include.contains("monitor/" + folder) ? "monitor/" + folder
                                                                           : folder;
}

/// The fault of an include; nothing: it has none.
std::optional<std::string> fault(const Source& source, const Include& include) {
  const std::string from = layer_of(source.path);
  const auto kept_from = [&](const auto& row) {
    return include.name.starts_with(row.first) &&
           (source.is_public() || !row.second.contains(from));
  };
  if (std::ranges::any_of(foreign, kept_from)) return from + " must not include " + include.name;
  if (include.from_monitor && shared_with_monitor.contains(include.name)) return {};
  const std::string to = target_of(include);
  if (to.empty()) return {};
  if (!may_include.contains(to)) return include.name + " is not in the table of layers";
  const bool to_public = include.name.starts_with("watchdog/");
  if (source.is_public() && !to_public) return "a public header must not include a private one";
  if (to == from) return {};
  if (include.from_monitor || from == "examples") {
    if (to_public || may_include.at(from).contains(to)) return {};
    return from + " must not include " + to + ", and of the library only public or shared headers";
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

TEST(Layers, no_product_source_depends_on_tests) {
  static const std::regex include(R"re(\s*#\s*include\s*"([^"]+)".*)re");
  const fs::path root = PROJECT_ROOT;
  for (const Source& source : sources()) {
    const bool of_product = source.path.starts_with("libwatchdog/") ||
                            source.path.starts_with("monitor/") ||
                            source.path.starts_with("tools/");
    if (!of_product) continue;
    for (std::size_t line = 0; line < source.lines.size(); ++line) {
      if (source.path.ends_with("CMakeLists.txt")) {
        EXPECT_EQ(source.lines[line].find("tests/"), std::string::npos) << source.at(line);
      }
      std::smatch match;
      if (!source.is_cpp() || !std::regex_match(source.lines[line], match, include)) continue;
      EXPECT_FALSE(fs::exists(root / "tests" / match.str(1)) &&
                   !fs::exists(root / "libwatchdog/src" / match.str(1)))
          << source.at(line) << ": " << match.str(1) << " is of the tests";
    }
  }
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
  const Source source{"libwatchdog/src/judge/case.cpp",
                      {"#include \"watchdog/health.h\"", "#include \"codec/fields.h\""}};
  EXPECT_EQ(faults(source),
            std::vector<std::string>{source.at(1) + ": judge must not include codec"});

  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"libwatchdog/src/facts/ids.cpp", "\"watchdog/tracker.h\""},
      {"libwatchdog/src/store/change_notifier.cpp", "\"watchdog/unlisted.h\""},
      {"libwatchdog/src/unlisted/a.cpp", "<string>"},
      {"libwatchdog/src/report/tracker.cpp", "<sqlite3.h>"},
      {"libwatchdog/include/watchdog/result.h", "<nlohmann/json.hpp>"},
      {"libwatchdog/include/watchdog/tracker.h", "\"store/store.h\""},
      {"libwatchdog/include/watchdog/unlisted.h", "<string>"},
      {"libwatchdog/examples/agent.cpp", "\"store/store.h\""},
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
      {"monitor/main.cpp", "\"store/store.h\""},
      {"monitor/cli/demo.cpp", "\"process/descendants.h\""},
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
  // A benchmark and an example may keep a pace, and a turn on a server that failed in passing
  // begins again a little later. Everything else waits for a condition.
  expect_no_line(
      "sleep_"
      "for(",
      [](const Source& source) {
        return (source.path.starts_with("libwatchdog/") || source.path.starts_with("tests/")) &&
               !source.path.starts_with("libwatchdog/examples/") &&
               !source.path.starts_with("tests/bench/") &&
               source.path != "libwatchdog/src/store/store_state.h";
      });
}

// `std::lock_guard(mutex);` is gone at the end of its own line.
TEST(Habits, a_lock_has_a_name) {
  const std::regex nameless(
      R"(^\s*std::(lock_guard|scoped_lock|shared_lock|unique_lock)\s*(<[^>]*>+)?\s*[({])");
  EXPECT_TRUE(std::regex_search("  std::lock_guard(mutex);", nameless));
  EXPECT_TRUE(std::regex_search("  std::unique_lock<std::mutex>{mutex};", nameless));
  EXPECT_FALSE(std::regex_search("  const std::lock_guard guard(mutex);", nameless));
  for (const Source& source : sources()) {
    if (!source.is_cpp()) continue;
    for (std::size_t at = 0; at < source.lines.size(); ++at)
      EXPECT_FALSE(std::regex_search(source.lines[at], nameless)) << source.at(at);
  }
}

TEST(Habits, text_goes_to_a_terminal_in_one_place) {
  // Each of these makes text safe before it writes it.
  const Set writers{"monitor/terminal/output.cpp", "monitor/terminal/wait_display.cpp",
                    "libwatchdog/src/report/writer.h"};
  static const std::regex writing(
      ".*(\\b(v?f?printf|fputs|fputc|puts|putc|putchar|fwrite|perror)\\(|std::(cout|cerr|clog)\\b)."
      "*");
  EXPECT_TRUE(std::regex_match("  std::fprintf(stderr, \"%s\", text);", writing));
  EXPECT_FALSE(std::regex_match("  std::snprintf(text.data(), 3, \"%d\", 1);", writing));
  Set found;
  for (const Source& source : sources()) {
    const bool example = source.path.starts_with("libwatchdog/examples/");
    if (!source.is_cpp() || layer_of(source.path) == source.path || example) continue;
    for (std::size_t line = 0; line < source.lines.size(); ++line) {
      if (!std::regex_match(source.lines[line], writing)) continue;
      found.insert(source.path);
      EXPECT_TRUE(writers.contains(source.path))
          << source.at(line) << ": write with monitor/terminal/output.h";
    }
  }
  EXPECT_EQ(found, writers);
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

/// Lines of a header that declare a member of a struct without an initializer.
std::vector<std::size_t> bare_members(const Source& header) {
  static const std::regex member(R"(^\s+(const )?[A-Za-z_][\w:]*(<.*>)?\s*\*?\s[a-z]\w*;.*)");
  static const std::regex no_member(
      R"(^\s+(return|using|typedef|friend|static|extern|enum|struct|class)\b.*)");
  static const std::regex begins_struct(R"(.*\bstruct\s+\w+[^;()=]*$)");
  std::vector<std::size_t> found;
  std::vector<bool> is_struct;  // for each open brace
  for (std::size_t line = 0; line < header.lines.size(); ++line) {
    const std::string code = header.lines[line].substr(0, header.lines[line].find("//"));
    if (!is_struct.empty() && is_struct.back() && std::regex_match(code, member) &&
        !std::regex_match(code, no_member))
      found.push_back(line);
    for (std::size_t at = 0; at < code.size(); ++at) {
      if (code[at] == '{') is_struct.push_back(std::regex_match(code.substr(0, at), begins_struct));
      if (code[at] == '}' && !is_struct.empty()) is_struct.pop_back();
    }
  }
  return found;
}

/// Returns where each function, member function or outer block of more than `most` lines begins.
std::vector<std::size_t> long_bodies(const Source& source, std::size_t most) {
  std::vector<std::size_t> found;
  std::map<std::size_t, std::size_t> begun;  // indentation → the newest line that begins there
  for (std::size_t at = 0; at < source.lines.size(); ++at) {
    const auto& line = source.lines[at];
    const auto indent = line.find_first_not_of(' ');
    if (indent != 0 && indent != 2) continue;
    if (line.substr(indent) != "}") {
      if (std::isalpha(static_cast<unsigned char>(line[indent])) != 0 || line[indent] == '[')
        begun[indent] = at;
    } else if (begun.contains(indent) && at - begun[indent] > most) {
      found.push_back(begun[indent]);
    }
  }
  return found;
}

TEST(Habits, a_function_has_at_most_80_lines) {
  std::vector<std::string> lines{"void f() {", "}", "class A {", "  int g() {"};
  lines.insert(lines.end(), 80, "    ++n;");
  lines.insert(lines.end(), {"  }", "};"});
  EXPECT_EQ(long_bodies({"a.h", lines}, 80), std::vector<std::size_t>{3});
  EXPECT_TRUE(long_bodies({"a.h", lines}, 81).empty());
  for (const Source& source : sources()) {
    if (!source.is_cpp() || source.path.starts_with("tests/")) continue;  // tests have tables
    for (const auto line : long_bodies(source, 80))
      ADD_FAILURE() << source.at(line) << ": give parts of this function names of their own";
  }
}

/// Returns the classes of a source, by name, with the number of functions that each declares.
std::map<std::string, int> functions_by_class(const Source& source) {
  static const std::regex head(R"(( *)(?:class|struct) ([\w:]+)(?: final)?(?: : [^;{]*)? \{)");
  static const std::regex function(
      R"((?:\[\[nodiscard\]\] )?(?:[\w:<>,&*~ ]+ [&*]?)?(operator\S+|~?\w+)\([^;]*.*)");
  static const std::regex other(
      R"((?:using|return|static_assert|std::function<|friend|if|for)\b.*)");
  std::map<std::string, int> found;
  std::vector<std::pair<std::size_t, std::string>> open;  // indentation and name
  for (const auto& line : source.lines) {
    const auto indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    const auto text = line.substr(indent);
    std::smatch match;
    if (!open.empty() && indent == open.back().first && text.starts_with("}")) {
      open.pop_back();
    } else if (std::regex_match(line, match, head)) {
      open.emplace_back(indent, match.str(2));
      found.emplace(match.str(2), 0);
    } else if (!open.empty() && indent == open.back().first + 2 && text.front() != '/' &&
               std::regex_match(text, function) && !std::regex_match(text, other)) {
      ++found[open.back().second];
    }
  }
  return found;
}

/// Returns the classes that a source defines outside of anonymous namespaces, with their
/// namespaces.
std::vector<std::string> classes_in(const Source& source) {
  static const std::regex opened(R"(namespace(?: ([\w:]+))? \{.*)");
  static const std::regex defined(R"((?:struct|class) (\w+)(?: final)?(?: :[^:].*)? \{.*)");
  std::vector<std::string> within, found;
  for (const auto& line : source.lines) {
    std::smatch match;
    if (std::regex_match(line, match, opened)) within.push_back(match[1]);
    if (line.starts_with("}  // namespace") && !within.empty()) within.pop_back();
    if (!std::regex_match(line, match, defined) || std::ranges::count(within, "") > 0) continue;
    std::string name;
    for (const auto& space : within) name += space + "::";
    found.push_back(name + match.str(1));
  }
  return found;
}

// The linker takes one of two classes with the same name for both.
TEST(Habits, a_class_has_a_name_of_its_own) {
  EXPECT_EQ(classes_in({"a.h",
                        {"namespace w {", "struct A {", "namespace {", "class B {",
                         "}  // namespace", "class C final : public A {", "}  // namespace w"}}),
            (std::vector<std::string>{"w::A", "w::C"}));
  std::map<std::string, std::string> places;
  for (const Source& source : sources()) {
    if (!source.is_cpp() || source.path.starts_with("tests/")) continue;
    for (const auto& name : classes_in(source)) {
      const auto [place, is_new] = places.emplace(name, source.path);
      EXPECT_TRUE(is_new) << source.path << ": " << place->second << " has a " << name << ", too";
    }
  }
}

TEST(Habits, a_class_has_at_most_25_functions) {
  const Source sample{"a.h",
                      {"struct A {", "  int f();", "  [[nodiscard]] bool g() const {",
                       "    return f();", "  }", "  int member = 0;", "  ~A();", "};"}};
  EXPECT_EQ(functions_by_class(sample), (std::map<std::string, int>{{"A", 3}}));
  for (const Source& source : sources()) {
    if (!source.is_cpp() || source.path.starts_with("tests/")) continue;
    for (const auto& [name, count] : functions_by_class(source)) {
      EXPECT_LE(count, 25) << source.path << ": " << name
                           << " does too much; give parts of it to other classes";
    }
  }
}

// Else `{.first = 1}` is a warning for users who compile with -Wextra.
TEST(Habits, members_of_public_structs_have_initializers) {
  EXPECT_EQ(bare_members({"a.h",
                          {"struct A {", "  int bare;", "  int set{};", "  int f();", "};",
                           "class B {", "  int hidden;", "};"}}),
            std::vector<std::size_t>{1});
  for (const Source& source : sources()) {
    if (!source.path.starts_with("libwatchdog/include/") || !source.is_cpp()) continue;
    for (const auto line : bare_members(source))
      ADD_FAILURE() << source.at(line) << ": give this member an initializer: {}";
  }
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

TEST(Habits, a_long_source_opens_with_its_idea) {
  std::string without;
  for (const Source& source : sources()) {
    if (!source.path.ends_with(".cpp") || source.path.starts_with("tests/")) continue;
    const auto comment = std::ranges::find_if(
        source.lines, [](const std::string& line) { return !line.starts_with("// "); });
    if (source.lines.size() > 150 && comment - source.lines.begin() < 3)
      without += source.path + "\n";
  }
  EXPECT_LE(std::ranges::count(without, '\n'), 2) << without;
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
