#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>

#include "cli/commands.h"
#include "cli/scoring.h"
#include "cli/table.h"
#include "watchdog/json_writer.h"

namespace watchdog::monitor {
namespace {

/// What was read: the runs that have a label line, and how many traces have none.
struct Collection {
  std::vector<ScoredRun> runs;
  int not_in_index = 0;
  int unread = 0;
};

struct Section {
  std::string source;  ///< Empty: all sources together.
  Group group;
};

std::string_view title_of(Rule rule) {
  switch (rule) {
    case Rule::detector:
      return "this detector";
    case Rule::openhands:
      return "OpenHands-style rules (any of the three)";
    case Rule::identical_exchange4:
      return "  action and observation ×4";
    case Rule::failing_call3:
      return "  action with an error ×3";
    case Rule::alternating6:
      return "  two in turn ×6";
    case Rule::identical_call3:
      return "identical call ×3";
    case Rule::identical_call5:
      return "identical call ×5";
  }
  return "";
}

std::string with_digits(double number, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  return text.data();
}
std::string share_text(const std::optional<double>& share) {
  return share ? with_digits(*share, 2) : "–";
}
std::string text_of(const Count& count) {
  return std::to_string(count.is) + "/" + std::to_string(count.of);
}
/// Share, interval and count.
std::string shown(const Count& count) {
  if (count.of == 0) return "–";
  const auto [low, high] = interval_of(count);
  return share_text(count.share()) + " [" + with_digits(low, 2) + " " + with_digits(high, 2) +
         "] " + text_of(count);
}
std::string shown(const std::optional<Notice>& notice) {
  return notice ? std::string(name_of(notice->pattern)) + " after call " +
                      std::to_string(notice->calls)
                : "–";
}
std::string label_text(const std::optional<bool>& loops) {
  return !loops ? "–" : *loops ? "loop" : "no loop";
}

Result<Findings> findings_of(Trace trace) {
  Trial trial;
  while (true) {
    auto line = trace.next();
    if (!line) return line.error();
    if (!*line) return trial.findings();
    trial.take(std::move(**line));
  }
}

/// Reads the traces one after another and says on standard error what is wrong with which.
class Collector {
 public:
  Collector(Labels labels, StepLabels steps)
      : labels_(std::move(labels)), steps_(std::move(steps)) {}

  int collect(const std::vector<std::filesystem::path>& traces) {
    const bool show_progress = isatty(STDERR_FILENO) == 1 && traces.size() > 1;
    int code = exit_done;
    std::size_t done = 0;
    for (const auto& file : traces) {
      const auto taken = take(file);
      ++done;
      if (show_progress) std::fprintf(stderr, "\r%zu of %zu traces", done, traces.size());
      if (taken) continue;
      if (show_progress) std::fputc('\n', stderr);
      ++collection_.unread;
      const bool missing = complain(taken.error()) == exit_not_found;
      code = std::max<int>(code, missing ? exit_not_found : exit_failed);
    }
    if (show_progress) std::fputc('\n', stderr);
    count_once(collection_.runs);
    return code;
  }

  [[nodiscard]] const Collection& collection() const noexcept { return collection_; }

 private:
  Result<void> take(const std::filesystem::path& file) {
    auto trace = Trace::open(file);
    if (!trace) return trace.error();
    const auto id = label_id(file);
    const auto label = labels_.find(id);
    if (label == labels_.end()) {
      std::fprintf(stderr, "watchdog-monitor: %s: %s is not in the index, so it is not scored\n",
                   file.c_str(), id.c_str());
      ++collection_.not_in_index;
      return {};
    }
    const auto [first, is_new] = files_.emplace(id, file);
    if (!is_new) {
      return Error{ErrorCode::conflict,
                   file.string() + ": " + id + " was read from " + first->second.string()};
    }
    auto findings = findings_of(std::move(*trace));
    if (!findings) return findings.error();
    ScoredRun run{.label = label->second, .findings = std::move(*findings), .steps = {}};
    if (const auto steps = steps_.find(id); steps != steps_.end()) run.steps = steps->second;
    if (const auto stray = stray_steps(run); stray > 0) {
      std::fprintf(stderr, "watchdog-monitor: %s: %d judged steps are no tool call of it\n",
                   file.c_str(), stray);
    }
    collection_.runs.push_back(std::move(run));
    return {};
  }

  Labels labels_;
  StepLabels steps_;
  std::map<std::string, std::filesystem::path> files_;
  Collection collection_;
};

/// The sources by name, then all of them together.
std::vector<Section> sections_of(const std::vector<ScoredRun>& runs) {
  std::map<std::string, Group> by_source;
  Section pool;
  for (const auto& run : runs) {
    by_source[run.label.source].push_back(&run);
    if (run.pooled) pool.group.push_back(&run);
  }
  std::vector<Section> sections;
  sections.reserve(by_source.size() + 1);
  for (auto& [source, group] : by_source) sections.push_back({source, std::move(group)});
  sections.push_back(std::move(pool));
  return sections;
}

int judged_steps(const Group& group) {
  std::size_t count = 0;
  for (const auto* run : group) count += run->steps.size();
  return static_cast<int>(count);
}

std::vector<std::string> left_out(const std::vector<ScoredRun>& runs) {
  std::vector<std::string> ids;
  for (const auto& run : runs) {
    if (!run.pooled) ids.push_back(run.label.id);
  }
  return ids;
}

// For people.

void print_runs(const std::vector<ScoredRun>& runs) {
  Table table({"LABEL", "OUTCOME", "CALLS", "SUSPECT", "ALARM", "OPENHANDS", "POOLED", "RUN"});
  for (const auto& run : runs) {
    const auto& ours = run.findings.of(Rule::detector);
    const auto& theirs = run.findings.of(Rule::openhands).alarm;
    table.add({label_text(run.label.loops), std::string(name_of(run.label.outcome)),
               std::to_string(run.findings.calls), shown(ours.suspicion), shown(ours.alarm),
               theirs ? "after call " + std::to_string(theirs->calls) : "–",
               run.pooled ? "yes" : "no", printable(run.label.id)});
  }
  std::printf("%s\n", table.text(terminal_width()).c_str());
}

void print_scores(const Group& group) {
  Table table({"CALLS", "RUNS", "LOOPS", "NO LOOPS", "RULE", "PRECISION", "RECALL", "F1",
               "MEDIAN CALL", "FALSE ALARMS", "SUSPECT"});
  for (const int first_calls : prefixes) {
    const auto census = census_of(group, first_calls);
    if (census.runs == 0) continue;
    for (const auto rule : rules) {
      const auto score = score_of(group, rule, first_calls);
      const auto once = [&](const std::string& text) { return rule == rules.front() ? text : ""; };
      table.add({once(first_calls == 0 ? "all" : "first " + std::to_string(first_calls)),
                 once(std::to_string(census.runs)), once(std::to_string(census.loops)),
                 once(std::to_string(census.others)), std::string(title_of(rule)),
                 shown(score.precision), shown(score.recall), share_text(score.f1()),
                 score.median_call ? with_digits(*score.median_call, 1) : "–",
                 shown(score.false_alarms),
                 rule == Rule::detector && score.suspects.of > 0 ? text_of(score.suspects) : "–"});
    }
  }
  std::printf("%s", table.text(terminal_width()).c_str());
}

void print_steps(const Group& group) {
  Table table({"STEPS", "RULE", "PRECISION", "RECALL", "F1"});
  for (const auto rule : rules) {
    const auto score = step_score_of(group, rule);
    table.add({rule == rules.front() ? std::to_string(judged_steps(group)) : "",
               std::string(title_of(rule)), shown(score.precision), shown(score.recall),
               share_text(score.f1())});
  }
  std::printf("\n%s", table.text(terminal_width()).c_str());
}

void print_section(const Section& section) {
  const auto census = census_of(section.group, 0);
  const auto name = section.source.empty() ? "All sources" : printable(section.source);
  std::printf("%s: %d runs, %d labelled (%d loops, %d no loops), %d successful without a loop\n",
              name.c_str(), census.runs, census.loops + census.others, census.loops, census.others,
              census.successes);
  print_scores(section.group);
  if (judged_steps(section.group) > 0) print_steps(section.group);
  std::printf("\n");
}

void print(const Collection& collection, bool list) {
  if (list) print_runs(collection.runs);
  for (const auto& section : sections_of(collection.runs)) print_section(section);
  if (const auto once = left_out(collection.runs); !once.empty()) {
    std::printf("Counted once in all sources, as they are the same runs under two:");
    for (const auto& id : once) std::printf(" %s", printable(id).c_str());
    std::printf("\n");
  }
  std::printf(
      "Shares have Wilson's 95 %% interval and the counts beside them. FALSE ALARMS and SUSPECT "
      "are "
      "of the successful\nruns without a loop; MEDIAN CALL is that of the first alarm of the loops "
      "found. \"first K\" takes the runs of K calls\nor more, and what is noticed before call K + "
      "1.\n");
  if (collection.not_in_index > 0)
    std::printf("traces not in the index: %d\n", collection.not_in_index);
  if (collection.unread > 0) std::printf("traces not read: %d\n", collection.unread);
}

// As JSON.

void write(JsonWriter& out, std::string_view name, const Count& count) {
  out.key(name).open_object().field("count", count.is).field("of", count.of);
  out.field("share", count.share());
  const auto [low, high] = interval_of(count);
  out.field("low", low).field("high", high).close_object();
}

void write(JsonWriter& out, std::string_view name, const std::optional<Notice>& notice) {
  out.key(name);
  if (!notice) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("seq", notice->seq).field("call", notice->calls);
  out.field("pattern", name_of(notice->pattern)).close_object();
}

void write(JsonWriter& out, const Census& census) {
  out.field("runs", census.runs).field("loops", census.loops).field("no_loops", census.others);
  out.field("successes", census.successes);
}

void write_scores(JsonWriter& out, const Group& group) {
  out.key("scores").open_array();
  for (const int first_calls : prefixes) {
    const auto census = census_of(group, first_calls);
    out.open_object().key("first_calls");
    first_calls > 0 ? out.value(first_calls) : out.value(nullptr);
    write(out, census);
    out.key("rules").open_array();
    for (const auto rule : rules) {
      const auto score = score_of(group, rule, first_calls);
      out.open_object().field("rule", name_of(rule));
      write(out, "precision", score.precision);
      write(out, "recall", score.recall);
      out.field("f1", score.f1()).field("median_call", score.median_call);
      write(out, "false_alarms", score.false_alarms);
      if (rule == Rule::detector) write(out, "suspects", score.suspects);
      out.close_object();
    }
    out.close_array().close_object();
  }
  out.close_array();
}

void write_steps(JsonWriter& out, const Group& group) {
  out.field("judged_steps", judged_steps(group)).key("steps").open_array();
  for (const auto rule : rules) {
    const auto score = step_score_of(group, rule);
    out.open_object().field("rule", name_of(rule));
    write(out, "precision", score.precision);
    write(out, "recall", score.recall);
    out.field("f1", score.f1()).close_object();
  }
  out.close_array();
}

void write_runs(JsonWriter& out, const std::vector<ScoredRun>& runs) {
  out.key("runs").open_array();
  for (const auto& run : runs) {
    out.open_object().field("id", run.label.id).field("label_loop", run.label.loops);
    out.field("outcome", name_of(run.label.outcome)).field("calls", run.findings.calls);
    out.field("pooled", run.pooled);
    write(out, "suspect", run.findings.of(Rule::detector).suspicion);
    out.key("alarms").open_object();
    for (const auto rule : rules) {
      write(out, name_of(rule), run.findings.of(rule).alarm);
    }
    out.close_object().close_object();
  }
  out.close_array();
}

std::string json_of(const Collection& collection, bool list) {
  JsonWriter out;
  out.open_object().field("detector", detector_version).key("sources").open_array();
  for (const auto& section : sections_of(collection.runs)) {
    out.open_object().key("source");
    section.source.empty() ? out.value(nullptr) : out.value(section.source);
    write_scores(out, section.group);
    write_steps(out, section.group);
    out.close_object();
  }
  out.close_array().key("counted_once").open_array();
  for (const auto& id : left_out(collection.runs)) out.value(id);
  out.close_array().field("not_in_index", collection.not_in_index);
  out.field("unread", collection.unread);
  if (list) write_runs(out, collection.runs);
  out.close_object();
  return out.take();
}

/// What was chosen, else what lies beside the index, else nothing.
std::filesystem::path steps_of(const ScoreOptions& options) {
  if (!options.steps.empty()) return options.steps;
  const auto beside = std::filesystem::path(options.index).replace_filename("steps.jsonl");
  std::error_code trouble;
  return std::filesystem::exists(beside, trouble) ? beside : std::filesystem::path();
}

/// A label that cannot be read leaves nothing to score.
int refuse(const Error& error) {
  return complain(error) == exit_not_found ? exit_not_found : exit_failed;
}

}  // namespace

int score(const ScoreOptions& options) {
  auto labels = read_labels(options.index);
  if (!labels) return refuse(labels.error());
  Result<StepLabels> steps = StepLabels{};
  if (const auto file = steps_of(options); !file.empty()) steps = read_step_labels(file);
  if (!steps) return refuse(steps.error());

  Collector collector(std::move(*labels), std::move(*steps));
  const int code = collector.collect(options.traces);
  if (options.json) {
    std::printf("%s\n", json_of(collector.collection(), options.list).c_str());
  } else {
    print(collector.collection(), options.list);
  }
  return code;
}

}  // namespace watchdog::monitor
