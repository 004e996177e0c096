// The measures say how well predictions rank and how true their shares are, on tasks that were not
// in training. The verdicts say what the model shows about each agent, and why it hides the rest.
// JSON and text are written from the same measures.
#include "cli/predict_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "predict/estimate.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t listed_agents_max = 10;
constexpr std::size_t picture_width = 40;

std::string decimals(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string with_range(const Measured& measured) {
  return decimals(measured.value, 3) + " [" + decimals(measured.low, 2) + " " +
         decimals(measured.high, 2) + "]";
}

std::string with_range(const std::optional<Measured>& measured) {
  return measured ? with_range(*measured) : "–";
}

std::string calls_name(std::size_t stage) {
  return stage == whole_run ? "all" : std::to_string(stage_calls.at(stage));
}

std::string share_of(const Coverage& covered) {
  if (covered.runs == 0) return "–";
  return decimals(static_cast<double>(covered.inside) / static_cast<double>(covered.runs), 2) +
         " of " + std::to_string(covered.runs);
}

/// A line for each bin: where its bar ends is the observed share, and `|` is the predicted one.
std::string reliability_line(const StageMeasures::Bin& bin) {
  const auto column = [](double share) {
    return std::min(static_cast<std::size_t>(std::lround(share * picture_width)),
                    picture_width - 1);
  };
  std::string bar(picture_width, ' ');
  std::fill_n(bar.begin(), column(bin.observed) + 1, '=');
  bar[column(bin.predicted)] = '|';
  return "  " + decimals(bin.predicted, 2) + " " + bar + " " + decimals(bin.observed, 2) + " of " +
         std::to_string(bin.runs);
}

void print_agents(const PredictionMeasures& stages) {
  Table table({"CALLS", "SESSIONS", "UNFINISHED", "AUROC", "BRIER", "BASE RATE", "AGENT"});
  for (std::size_t at = 0; at < stages.size(); ++at) {
    if (!stages[at]) continue;
    const auto& agents = stages[at]->agents;
    for (std::size_t i = 0; i < std::min(agents.size(), listed_agents_max); ++i) {
      const auto& agent = agents[i];
      table.add({calls_name(at), std::to_string(agent.runs), std::to_string(agent.unfinished),
                 with_range(agent.auroc), decimals(agent.brier, 3), decimals(agent.brier_base, 3),
                 agent.agent.empty() ? "(not known)" : terminal_line(agent.agent)});
    }
  }
  print("\n" + table.text(terminal_width()));
}

void write(JsonWriter& out, std::string_view name, const Measured& measured) {
  out.key(name).open_object().field("value", measured.value);
  out.field("low", measured.low).field("high", measured.high).close_object();
}

void write(JsonWriter& out, std::string_view name, const std::optional<Measured>& measured) {
  if (measured) return write(out, name, *measured);
  out.key(name).value(nullptr);
}

void write(JsonWriter& out, std::string_view name, const Coverage& covered) {
  out.key(name).open_object().field("runs", covered.runs);
  out.field("inside", covered.inside).close_object();
}

void write_calls(JsonWriter& out, std::size_t stage) {
  out.key("calls");
  stage == whole_run ? out.value(nullptr) : out.value(stage_calls.at(stage));
}

void write_stage(JsonWriter& out, std::size_t at, const StageMeasures& stage) {
  out.open_object();
  write_calls(out, at);
  out.field("runs", stage.runs).field("unfinished", stage.unfinished);
  write(out, "auroc", stage.auroc);
  write(out, "aurocRepetition", stage.auroc_repetition);
  write(out, "aurocRepetitionAndAgent", stage.auroc_agents);
  write(out, "gain", stage.gain);
  write(out, "gainToRepetitionAndAgent", stage.gain_agents);
  write(out, "withinAgent", stage.within_agent);
  write(out, "withinAgentRepetition", stage.within_agent_repetition);
  write(out, "withinTask", stage.within_task);
  out.field("taskPairs", stage.task_pairs);
  write(out, "auprc", stage.auprc);
  write(out, "brier", stage.brier);
  write(out, "brierBaseRate", stage.brier_base);
  write(out, "ece", stage.ece);
  out.key("reliability").open_array();
  for (const auto& bin : stage.bins) {
    out.open_object().field("runs", bin.runs).field("predicted", bin.predicted);
    out.field("observed", bin.observed).close_object();
  }
  out.close_array().key("agents").open_array();
  for (const auto& agent : stage.agents) {
    out.open_object().field("agent", agent.agent).field("runs", agent.runs);
    out.field("unfinished", agent.unfinished);
    write(out, "auroc", agent.auroc);
    out.field("brier", agent.brier).field("brierBaseRate", agent.brier_base).close_object();
  }
  out.close_array().key("flagged").open_object().field("finished", stage.flagged_finished);
  out.field("ofFinished", stage.finished).field("unfinished", stage.flagged_unfinished);
  out.close_object().key("shown").open_object().field("runs", stage.shown);
  out.field("brier", stage.shown_brier).field("brierBaseRate", stage.shown_brier_base);
  out.close_object();
  write(out, "callsLeft", stage.ranges);
  write(out, "callsLeftShown", stage.shown_ranges);
  out.field("callsLeftWidth", stage.range_width).close_object();
}

/// The names of all agents that the model knows.
std::vector<std::string> agent_names(const PredictionModel& model) {
  std::vector<std::string> names;
  for (const auto& stage : model.stages) {
    for (const auto& agent : stage.agents) names.push_back(agent.name);
  }
  for (const auto& lengths : model.lengths) names.push_back(lengths.name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

const AgentLengths* lengths_named(const PredictionModel& model, const std::string& name) {
  for (const auto& lengths : model.lengths) {
    if (lengths.name == name) return &lengths;
  }
  return nullptr;
}

/// Returns why the range of calls is hidden; empty: it is shown.
std::string hidden_range(const PredictionModel& model, const AgentLengths& lengths,
                         std::size_t stage) {
  const auto calls = stage_calls.at(stage);
  if (shown_calls_left(model, calls, lengths.name)) return "";
  const auto& covered = lengths.coverage.at(stage);
  if (covered.runs < comparable_min)
    return "hidden: measured on " + std::to_string(covered.runs) +
           " held-out sessions; 50 are needed";
  if (!range_left(lengths, calls)) return "hidden: too few sessions got that far";
  return "hidden: only " + share_of(covered) +
         " held-out sessions ended within their range (aim 0.80, least 0.70)";
}

}  // namespace

void print_measures(const PredictionMeasures& stages) {
  Table ranks({"CALLS", "SESSIONS", "UNFINISHED", "AUROC", "REPETITION", "GAIN",
               "REPETITION AND AGENT", "IN AGENT", "REPETITION IN AGENT", "IN TASK (PAIRS)"});
  Table shares(
      {"CALLS", "AUPRC", "BRIER", "BASE RATE", "ECE", "FLAGGED", "SHOWN", "CALLS LEFT", "WIDTH"});
  for (std::size_t at = 0; at < stages.size(); ++at) {
    if (!stages[at]) continue;
    const auto& stage = *stages[at];
    ranks.add({calls_name(at), std::to_string(stage.runs), std::to_string(stage.unfinished),
               with_range(stage.auroc), with_range(stage.auroc_repetition), with_range(stage.gain),
               with_range(stage.auroc_agents), with_range(stage.within_agent),
               with_range(stage.within_agent_repetition),
               with_range(stage.within_task) + " (" + std::to_string(stage.task_pairs) + ")"});
    shares.add({calls_name(at), with_range(stage.auprc), with_range(stage.brier),
                with_range(stage.brier_base), with_range(stage.ece),
                std::to_string(stage.flagged_finished) + " of " + std::to_string(stage.finished),
                std::to_string(stage.shown), share_of(stage.ranges),
                stage.ranges.runs == 0 ? "–" : decimals(stage.range_width, 0)});
  }
  print("How well predictions rank, on tasks that were not in training:\n" +
        ranks.text(terminal_width()));
  print("\nHow true they are:\n" + shares.text(terminal_width()));
  print_line(
      "In brackets: 95 % interval of 500 resamples of tasks. IN AGENT compares sessions of one\n"
      "agent; 0.5 is chance. FLAGGED is how many of the finished ones were called unlikely to\n"
      "finish. SHOWN is how many would have had a prediction on their page. CALLS LEFT is the\n"
      "share of sessions that ended within their range of calls; the aim is 0.80.");
  print_agents(stages);
  for (std::size_t at = 0; at < stages.size(); ++at) {
    if (!stages[at]) continue;
    print_line("\nReliability, " + calls_name(at) + " calls" +
               ": predicted, observed as a bar (| is the prediction), sessions");
    for (const auto& bin : stages[at]->bins) print_line(reliability_line(bin));
  }
}

void print_verdicts(const PredictionModel& model) {
  const auto names = agent_names(model);
  if (names.empty()) print_line("No session has a known agent, so nothing is shown.");
  for (const auto& name : names) {
    print_line("\n" + terminal_line(name));
    for (std::size_t at = 0; at < whole_run; ++at) {
      if (const auto* agent = stage_agent(model.stages.at(at), name); agent != nullptr) {
        print_line("  after " + calls_name(at) + " calls, will it finish: " + in_words(*agent) +
                   (agent->worth == Worth::shown && !model.stages.at(at).all_features
                        ? ", by the repetition alone"
                        : ""));
      }
      const auto* lengths = lengths_named(model, name);
      if (lengths == nullptr || lengths->coverage.at(at).runs == 0) continue;
      const auto why = hidden_range(model, *lengths, at);
      print_line("  after " + calls_name(at) + " calls, calls left: " +
                 (why.empty() ? "shown (" + share_of(lengths->coverage.at(at)) +
                                    " held-out sessions ended within their range)"
                              : why));
    }
  }
}

std::string measures_json(const PredictionMeasures& stages) {
  JsonWriter out;
  out.open_array();
  for (std::size_t at = 0; at < stages.size(); ++at) {
    if (stages[at]) write_stage(out, at, *stages[at]);
  }
  out.close_array();
  return "\"stages\":" + out.finish();
}

std::string verdicts_json(const PredictionModel& model) {
  JsonWriter out;
  out.open_array();
  for (const auto& name : agent_names(model)) {
    out.open_object().field("agent", name).key("stages").open_array();
    for (std::size_t at = 0; at < whole_run; ++at) {
      const auto* agent = stage_agent(model.stages.at(at), name);
      if (agent == nullptr) continue;
      out.open_object().field("calls", stage_calls.at(at)).field("runs", agent->runs);
      out.field("unfinished", agent->unfinished).field("worth", name_of(agent->worth));
      out.field("allFeatures", model.stages.at(at).all_features);
      out.field("auroc", agent->auroc).field("low", agent->auroc_low);
      out.field("high", agent->auroc_high).field("why", in_words(*agent)).close_object();
    }
    out.close_array().key("callsLeft").open_array();
    if (const auto* lengths = lengths_named(model, name)) {
      for (std::size_t at = 0; at < whole_run; ++at) {
        const auto& covered = lengths->coverage.at(at);
        if (covered.runs == 0) continue;
        out.open_object().field("calls", stage_calls.at(at)).field("runs", covered.runs);
        out.field("inside", covered.inside);
        out.field("shown", hidden_range(model, *lengths, at).empty()).close_object();
      }
    }
    out.close_array().close_object();
  }
  out.close_array();
  return "\"agents\":" + out.finish();
}

}  // namespace watchdog::monitor
