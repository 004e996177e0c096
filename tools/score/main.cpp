// Labels are read first: a wrong label file leaves nothing to score. Then each trace is folded
// once, and all rules read its findings. A trace that cannot be read, or has no label, is reported
// and counted, and the rest goes on. Sections are the sources by name, and then all runs together.
// Only in the last section does a run that two sources share count once. Text and JSON are written
// from the same sections.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>

#include "cli/endpoint.h"
#include "cli/predict_report.h"
#include "files/regular_file.h"
#include "predict/training.h"
#include "score/examples.h"
#include "score/scoring.h"
#include "score/study.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct ScoreOptions {
  std::vector<std::filesystem::path> traces;
  std::filesystem::path index;
  std::filesystem::path steps;  ///< Empty: steps.jsonl beside the index, if there is one.
  bool list = false;            ///< Every run as well.
  bool json = false;
  bool examples = false;        ///< Examples for predictions, instead of scores.
  bool study = false;           ///< The worth of each rule and threshold, instead of scores.
  bool predictions = false;     ///< The measures of predictions, instead of scores.
  std::filesystem::path prior;  ///< Examples of which the prior is printed, instead of scores.
};

constexpr const char* score_footer =
    "An index has one JSON object per line: {\"id\": \"folder/file\" (without .jsonl), \"source\", "
    "\"label_loop\": true|false|null, \"outcome\": success|failure|unknown, \"task_key\", "
    "\"overlaps_whowhen\"}. Steps are {\"id\", \"seq\" of a tool call, \"label\", \"rel\"}; those "
    "with rel action_action are scored, and the label Repetition is to be found.\n"
    "\n"
    "--json: {\"detector\": version, \"sources\": [{\"source\" (null: all),\n"
    "  \"scores\": [{\"first_calls\" (null: all), \"runs\", \"loops\", \"no_loops\", "
    "\"successes\",\n"
    "    \"rules\": [{\"rule\", \"precision\", \"recall\", \"f1\", \"median_call\", "
    "\"false_alarms\", \"suspects\" (detector only)}]}],\n"
    "  \"judged_steps\", \"steps\": [{\"rule\", \"precision\", \"recall\", \"f1\"}]}], "
    "\"counted_once\": [id], \"not_in_index\", \"unread\",\n"
    "  with --list \"runs\": [{\"id\", \"label_loop\", \"outcome\", \"calls\", \"pooled\", "
    "\"suspect\", \"alarms\": {rule: notice}}]}\n"
    "A share is {\"count\", \"of\", \"share\", \"low\", \"high\"}, a notice is null or {\"seq\", "
    "\"call\", \"pattern\"}.\n"
    "\n";

/// The runs with a label, and the number of traces without one.
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
      return "OpenHands-style rules (any of the four)";
    case Rule::identical_exchange4:
      return "  action and observation ×4";
    case Rule::failing_call3:
      return "  action with an error ×3";
    case Rule::alternating6:
      return "  two in turn ×6";
    case Rule::monologue3:
      return "  message of the agent ×3";
    case Rule::identical_call3:
      return "identical call ×3";
    case Rule::identical_call4:
      return "identical call ×4";
    case Rule::identical_call5:
      return "identical call ×5";
    case Rule::repeated_call6:
      return "same call ×6 in the run";
    case Rule::alternating_call6:
      return "two calls in turn ×6";
    case Rule::repeated_call10:
      return "same call ×10 of 30";
    case Rule::exchange6_of_10:
      return "call and result ×6 of 10";
    case Rule::same_error3:
      return "one tool's error ×3";
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
  Evaluation evaluation;
  while (true) {
    auto line = trace.next();
    if (!line) return line.error();
    if (!*line) return evaluation.findings();
    evaluation.fold(std::move(**line));
  }
}

/// Reads the traces one after another and says on standard error what is wrong with which.
class Collector {
 public:
  Collector(Labels labels, StepLabels steps)
      : labels_(std::move(labels)), steps_(std::move(steps)) {}

  int collect(const std::vector<std::filesystem::path>& traces) {
    const TraceCount count(traces.size());
    int code = exit_done;
    std::size_t done = 0;
    for (const auto& file : traces) {
      const auto evaluated = evaluate(file);
      ++done;
      count.show(done);
      if (evaluated) continue;
      count.end_line();
      ++collection_.unread;
      const bool missing = complain(evaluated.error()) == exit_not_found;
      code = std::max<int>(code, missing ? exit_not_found : exit_failed);
    }
    count.end_line();
    count_once(collection_.runs);
    return code;
  }

  [[nodiscard]] const Collection& collection() const noexcept { return collection_; }

 private:
  Result<void> evaluate(const std::filesystem::path& file) {
    auto trace = Trace::open(file);
    if (!trace) return trace.error();
    const auto id = label_id(file);
    const auto label = labels_.find(id);
    if (label == labels_.end()) {
      warn(file.string() + ": " + id + " is not in the index, so it is not scored");
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
      warn(file.string() + ": " + std::to_string(stray) + " judged steps are no tool call of it");
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
               run.pooled ? "yes" : "no", terminal_line(run.label.id)});
  }
  print_line(table.text(terminal_width()));
}

void print_scores(const Group& group) {
  Table table({"CALLS", "RUNS", "LOOPS", "NO LOOPS", "RULE", "PRECISION", "RECALL", "F1",
               "MEDIAN CALL", "FALSE ALARMS", "SUSPECT"});
  for (const int first_calls : prefixes) {
    const auto counts = counts_of(group, first_calls);
    if (counts.runs == 0) continue;
    for (const auto rule : rules) {
      const auto score = score_of(group, rule, first_calls);
      const auto once = [&](const std::string& text) { return rule == rules.front() ? text : ""; };
      table.add({once(first_calls == 0 ? "all" : "first " + std::to_string(first_calls)),
                 once(std::to_string(counts.runs)), once(std::to_string(counts.loops)),
                 once(std::to_string(counts.others)), std::string(title_of(rule)),
                 shown(score.precision), shown(score.recall), share_text(score.f1()),
                 score.median_call ? with_digits(*score.median_call, 1) : "–",
                 shown(score.false_alarms),
                 rule == Rule::detector && score.suspects.of > 0 ? text_of(score.suspects) : "–"});
    }
  }
  print(table.text(terminal_width()));
}

void print_steps(const Group& group) {
  Table table({"STEPS", "RULE", "PRECISION", "RECALL", "F1"});
  for (const auto rule : rules) {
    const auto score = step_score_of(group, rule);
    table.add({rule == rules.front() ? std::to_string(judged_steps(group)) : "",
               std::string(title_of(rule)), shown(score.precision), shown(score.recall),
               share_text(score.f1())});
  }
  print("\n" + table.text(terminal_width()));
}

void print_section(const Section& section) {
  const auto counts = counts_of(section.group, 0);
  const auto name = section.source.empty() ? "All sources" : terminal_line(section.source);
  print_line(name + ": " + std::to_string(counts.runs) + " runs, " +
             std::to_string(counts.loops + counts.others) + " labelled (" +
             std::to_string(counts.loops) + " loops, " + std::to_string(counts.others) +
             " no loops), " + std::to_string(counts.successes) + " successful without a loop");
  print_scores(section.group);
  if (judged_steps(section.group) > 0) print_steps(section.group);
  print_line("");
}

void print(const Collection& collection, bool list) {
  if (list) print_runs(collection.runs);
  for (const auto& section : sections_of(collection.runs)) print_section(section);
  if (const auto once = left_out(collection.runs); !once.empty()) {
    std::string ids;
    for (const auto& id : once) ids += " " + terminal_line(id);
    print_line("Counted once in all sources, as they are the same runs under two:" + ids);
  }
  print_line(
      "Shares have Wilson's 95 % interval and the counts beside them. FALSE ALARMS and SUSPECT "
      "are "
      "of the successful\nruns without a loop; MEDIAN CALL is that of the first alarm of the loops "
      "found. \"first K\" takes the runs of K calls\nor more, and what is noticed before call K + "
      "1.");
  if (collection.not_in_index > 0)
    print_line("traces not in the index: " + std::to_string(collection.not_in_index));
  if (collection.unread > 0) print_line("traces not read: " + std::to_string(collection.unread));
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

void write(JsonWriter& out, const RunCounts& counts) {
  out.field("runs", counts.runs).field("loops", counts.loops).field("no_loops", counts.others);
  out.field("successes", counts.successes);
}

void write_scores(JsonWriter& out, const Group& group) {
  out.key("scores").open_array();
  for (const int first_calls : prefixes) {
    const auto counts = counts_of(group, first_calls);
    out.open_object().key("first_calls");
    first_calls > 0 ? out.value(first_calls) : out.value(nullptr);
    write(out, counts);
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
  return out.finish();
}

/// Returns the chosen file, else the one beside the index, else nothing.
std::filesystem::path steps_of(const ScoreOptions& options) {
  if (!options.steps.empty()) return options.steps;
  const auto beside = std::filesystem::path(options.index).replace_filename("steps.jsonl");
  std::error_code trouble;
  return std::filesystem::exists(beside, trouble) ? beside : std::filesystem::path();
}

constexpr std::size_t prior_examples_bytes_max = 64UL * 1024 * 1024;

/// A label that cannot be read leaves nothing to score.
int refuse(const Error& error) {
  return complain(error) == exit_not_found ? exit_not_found : exit_failed;
}

}  // namespace

/// Examples of the traces, or how well predictions from them work.
int predictions(const ScoreOptions& options, const Labels& labels) {
  std::vector<Example> examples;
  int left_out = 0;
  for (const auto& file : options.traces) {
    const auto label = labels.find(label_id(file));
    if (label == labels.end()) {
      ++left_out;
      continue;
    }
    auto example = example_of(file, label->second);
    if (!example) return complain(example.error());
    if (*example) {
      examples.push_back(std::move(**example));
    } else {
      ++left_out;
    }
  }
  if (options.examples) {
    print(to_json_lines(examples));
  } else {
    print_measures(measure(examples));
  }
  note(std::to_string(examples.size()) + " runs; " + std::to_string(left_out) +
           " were left out: outcome unknown, or the same run in another source",
       options.examples);
  return exit_done;
}

/// Prints the worth of each rule and each threshold. A run that two sources have counts once.
int print_study(const ScoreOptions& options, const Labels& labels) {
  std::vector<StudyRun> runs;
  for (const auto& file : options.traces) {
    const auto label = labels.find(label_id(file));
    if (label == labels.end()) continue;
    auto trace = Trace::open(file);
    if (!trace) return complain(trace.error());
    StudyRun run{.label = label->second, .lines = {}};
    while (true) {
      auto line = trace->next();
      if (!line) return complain(line.error());
      if (!*line) break;
      run.lines.push_back(std::move(**line));
    }
    runs.push_back(std::move(run));
  }
  print(study(std::move(runs)));
  return exit_done;
}

/// The prior of a monitor's own training, from recorded runs.
int print_prior(const ScoreOptions& options) {
  const auto text = read_regular_file(options.prior, prior_examples_bytes_max, Readers::anybody);
  if (!text) {
    auto error = text.error();
    error.message = options.prior.string() + ": " + error.message;
    return refuse(error);
  }
  const auto examples = examples_from_json_lines(*text);
  if (!examples) return refuse(examples.error());
  print_json(to_json(as_prior(train(*examples))));
  return exit_done;
}

static int score(const ScoreOptions& options) {
  if (!options.prior.empty()) return print_prior(options);
  auto labels = read_labels(options.index);
  if (!labels) return refuse(labels.error());
  if (options.study) return print_study(options, *labels);
  if (options.examples || options.predictions) return predictions(options, *labels);
  Result<StepLabels> steps = StepLabels{};
  if (const auto file = steps_of(options); !file.empty()) steps = read_step_labels(file);
  if (!steps) return refuse(steps.error());

  Collector collector(std::move(*labels), std::move(*steps));
  const int code = collector.collect(options.traces);
  if (options.json) {
    print_json(json_of(collector.collection(), options.list));
  } else {
    print(collector.collection(), options.list);
  }
  return code;
}

}  // namespace watchdog::monitor

int main(int argc, char** argv) {
  using namespace watchdog::monitor;
  CLI::App app("Scores the detector on labelled traces, beside simpler rules.", "watchdog-score");
  app.set_version_flag("--version", WATCHDOG_VERSION);
  ScoreOptions options;
  app.add_option("traces", options.traces, "Trace files with one JSON object per line");
  app.add_option("--index", options.index, "File with the labels of the runs");
  app.add_option("--steps", options.steps,
                 "File with the labels of single steps (default: steps.jsonl beside the index)");
  app.add_flag("--list,--verbose", options.list, "List every run as well");
  app.add_flag("--json", options.json, "Print one JSON object");
  auto* examples =
      app.add_flag("--examples", options.examples,
                   "Print the runs as examples for predictions (JSON lines), without scores");
  app.add_flag("--predictions", options.predictions,
               "Print how well predictions work on tasks that are not in their training")
      ->excludes(examples);
  app.add_flag("--study", options.study,
               "Print what each rule and each threshold is worth (Markdown), instead of scores")
      ->excludes(examples);
  app.add_option("--prior", options.prior,
                 "Print the prior of predictions that these examples (of --examples) give, without "
                 "scores");
  app.footer(score_footer);
  try {
    app.parse(argc, argv);
    if (options.prior.empty() && (options.traces.empty() || options.index.empty()))
      throw CLI::RequiredError("traces and --index");
    return score(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
}
