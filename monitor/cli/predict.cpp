// `predict` reads the database alone: it needs no monitor, and a running one is not disturbed. The
// model is a file beside the database, which monitors read when it changes. Nothing else reads it.
// Examples in a file take the place of sessions, so that recorded runs can be measured as well.
#include <algorithm>
#include <memory>

#include "api/assets.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/own_sessions.h"
#include "cli/predict_report.h"
#include "cli/session_choice.h"
#include "cli/usage.h"
#include "core/estimator.h"
#include "files/regular_file.h"
#include "predict/estimate.h"
#include "setup/config_file.h"
#include "store/event_reader.h"
#include "terminal/output.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct PredictOptions {
  std::string action;
  SessionChoice choice;  ///< For `explain`.
  std::string session;   ///< Its id.
  Sources sources;
  std::filesystem::path database;
  std::filesystem::path examples;  ///< Empty: the sessions of the database.
  bool no_prior = false;
  bool json = false;
};

constexpr std::size_t examples_bytes_max = 64UL * 1024 * 1024;

/// The weights from recorded runs, which training starts from; nothing: it starts from zero.
Result<std::optional<PredictionModel>> prior_for(const PredictOptions& options) {
  if (options.no_prior) return std::optional<PredictionModel>{};
  for (const auto& file : embedded_files()) {
    if (file.name != "prediction-prior.json") continue;
    auto prior = model_from_json(file.content);
    if (!prior) return prior.error();
    return std::optional(std::move(*prior));
  }
  return Error{ErrorCode::corrupt, "the program has no prior"};
}

Result<OwnSessions> examples_in_file(const std::filesystem::path& file) {
  const auto in_file = [&](Error error) {
    error.message = file.string() + ": " + error.message;
    return error;
  };
  const auto text = read_regular_file(file, examples_bytes_max, Readers::anybody);
  if (!text) return in_file(text.error());
  auto examples = examples_from_json_lines(*text);
  if (!examples) return in_file(examples.error());
  OwnSessions own{.examples = std::move(*examples)};
  for (const auto& example : own.examples) own.calls += example.calls;
  return own;
}

Result<OwnSessions> sessions_for(const PredictOptions& options) {
  if (!options.examples.empty()) return examples_in_file(options.examples);
  auto reader = StoreReader::open(options.database);
  if (!reader) return reader.error();
  return ended_sessions(*reader);
}

bool knows_something(const PredictionModel& model) {
  return std::ranges::any_of(model.stages, [](const StageModel& stage) { return stage.runs > 0; });
}

Error too_few(const OwnSessions& own) {
  return {
      ErrorCode::exhausted,
      std::to_string(own.examples.size()) +
          " ended sessions are too few. It takes 20 of at least 4 finished calls, some of which "
          "finished their task and some of which did not"};
}

std::string sessions_in_words(const OwnSessions& own) {
  return std::to_string(own.examples.size()) + " ended sessions, " + std::to_string(own.calls) +
         " calls" +
         (own.dropped > 0 ? "; " + std::to_string(own.dropped) +
                                " were left out, because their events are no longer kept"
                          : "");
}

int train_model(const PredictOptions& options) {
  const auto prior = prior_for(options);
  if (!prior) return complain(prior.error());
  const auto own = sessions_for(options);
  if (!own) return complain(own.error());
  const auto model = train(own->examples, *prior ? &**prior : nullptr, {.simplest = true});
  if (!knows_something(model)) return complain(too_few(*own));
  const auto path = model_beside(options.database);
  auto file = read_config(path);
  if (!file) return complain(file.error());
  if (auto written = write_config(*file, to_json(model) + "\n"); !written) {
    (void)complain(written.error());
    return exit_failed;
  }
  if (options.json) {
    JsonWriter head;
    head.open_object().field("model", path.string()).field("trainedOn", model.trained_on);
    head.field("sessions", model.runs).field("calls", own->calls).field("dropped", own->dropped);
    print_json(head.finish() + "," + verdicts_json(model) + "}");
    return exit_done;
  }
  print_line(path.string() + ": learned from " + sessions_in_words(*own) + " (digest " +
             model.trained_on + ")");
  print_verdicts(model);
  return exit_done;
}

int evaluate_model(const PredictOptions& options) {
  const auto prior = prior_for(options);
  if (!prior) return complain(prior.error());
  const auto own = sessions_for(options);
  if (!own) return complain(own.error());
  const auto model = train(own->examples, *prior ? &**prior : nullptr, {.simplest = true});
  if (!knows_something(model)) return complain(too_few(*own));
  const auto stages = measure(own->examples, *prior ? &**prior : nullptr);
  if (options.json) {
    JsonWriter head;
    head.open_object().field("sessions", model.runs).field("calls", own->calls);
    head.field("dropped", own->dropped).field("trainedOn", model.trained_on);
    print_json(head.finish() + "," + measures_json(stages) + "," + verdicts_json(model) + "}");
    return exit_done;
  }
  print_line(sessions_in_words(*own) + "\n");
  print_measures(stages);
  print_line("\nWhat a model of all these sessions shows, by agent:");
  print_verdicts(model);
  return exit_done;
}

/// All that `explain` says. A plain value.
struct SessionPrediction {
  std::int64_t calls = 0;
  std::optional<std::size_t> stage{};
  std::string why{};  ///< Why something is shown or hidden.
  std::optional<Estimate> estimate{};
  std::vector<std::string> reasons{};
};

SessionPrediction prediction_of(const PredictionModel& model, const Example& example) {
  SessionPrediction found{.calls = example.calls, .stage = stage_of(example.calls)};
  found.estimate = estimate_of(model, example, example.calls, example.agent);
  if (!found.stage) {
    found.why = "hidden: it has " + std::to_string(example.calls) +
                (example.calls == 1 ? " finished call" : " finished calls") + "; 4 are needed";
    return found;
  }
  const auto& stage = model.stages.at(*found.stage);
  const auto* agent = stage_agent(stage, example.agent);
  if (example.agent.empty()) {
    found.why = "hidden: its agent is not known";
  } else if (agent == nullptr) {
    found.why = "hidden: no ended session of its agent got that far";
  } else if (agent->worth == Worth::shown && (!found.estimate || !found.estimate->unfinished)) {
    found.why =
        "hidden: fewer than 50 sessions looked like this, or the interval is wider than 0.4";
  } else {
    found.why = in_words(*agent);
  }
  if (const auto& features = example.stages.at(*found.stage); features && stage.runs > 0)
    found.reasons = contributions(model, *found.stage, *features);
  return found;
}

void print_explanation(const Example& example, const std::string& session,
                       const SessionPrediction& found) {
  print_line(session + "  " +
             (example.agent.empty() ? "" : "agent " + terminal_line(example.agent) + ", ") +
             std::to_string(found.calls) + " finished calls");
  if (found.stage) {
    print_line("Compared after " + std::to_string(stage_calls.at(*found.stage)) + " calls.");
  }
  if (found.estimate && found.estimate->unfinished)
    print_line(found.estimate->unfinished->text + ".");
  if (found.estimate && found.estimate->calls_left)
    print_line(found.estimate->calls_left->text + ".");
  print_line("Will it finish: " + found.why + ".");
  for (const auto& reason : found.reasons) print_line("  " + reason);
}

/// Names in the database are looked up as in those of a monitor.
Result<std::string> session_in(const PredictOptions& options) {
  auto endpoint = Endpoint::open({.database = options.database, .sources = options.sources});
  if (!endpoint) return endpoint.error();
  return session_of(*endpoint, options.choice);
}

int explain_session(PredictOptions options) {
  const auto database = options.database;
  const auto model = read_model(model_beside(database));
  if (!model) {
    auto error = model.error();
    if (error.code == ErrorCode::not_found)
      error.message = "there is no model yet: run `watchdog-monitor predict train` first";
    return complain(error);
  }
  auto session = session_in(options);
  if (!session) return complain(session.error());
  options.session = std::move(*session);
  auto reader = StoreReader::open(database);
  if (!reader) return complain(reader.error());
  const auto row = reader->session(options.session);
  if (!row) return complain(row.error());
  const auto first_kept = EventReader(*reader).first_kept();
  if (!first_kept) return complain(first_kept.error());
  const auto example = example_of(*reader, *row, *first_kept);
  if (!example) return complain(example.error());
  if (!*example) {
    return complain({ErrorCode::not_found,
                     "the first events of session " + options.session + " are no longer kept"});
  }
  const auto found = prediction_of(*model, **example);
  if (!options.json) {
    print_explanation(**example, options.session, found);
    return exit_done;
  }
  JsonWriter out;
  out.open_object().field("session", options.session).field("agent", (*example)->agent);
  out.field("calls", found.calls).key("comparedAfter");
  found.stage ? out.value(stage_calls.at(*found.stage)) : out.value(nullptr);
  out.field("why", found.why).key("unfinished");
  const bool shows = found.estimate && found.estimate->unfinished;
  shows ? out.value(found.estimate->unfinished->text) : out.value(nullptr);
  out.key("callsLeft");
  const bool ranges = found.estimate && found.estimate->calls_left;
  ranges ? out.value(found.estimate->calls_left->text) : out.value(nullptr);
  out.key("contributions").open_array();
  for (const auto& reason : found.reasons) out.value(reason);
  out.close_array().close_object();
  print_json(out.finish());
  return exit_done;
}

constexpr const char* predict_footer =
    "train learns from the ended sessions of the database, starting from weights of recorded runs, "
    "and writes FILE-prediction.json beside it. A running monitor reads that file by itself. Then "
    "a session page, `status` and the field `estimate` of the progress document may say how many "
    "similar sessions did not finish, and how many calls others still needed. No health, alert or "
    "directive uses it.\n"
    "evaluate measures such predictions on tasks that were not in training, and says for each "
    "agent "
    "what is shown and why the rest stays hidden.\n"
    "explain shows what the model says of one session, and the three facts that count most.\n"
    "\n"
    "--json: train {\"model\", \"trainedOn\", \"sessions\", \"calls\", \"dropped\", "
    "\"agents\": [{\"agent\", \"stages\": [{\"calls\", \"runs\", \"unfinished\", "
    "\"worth\", \"why\", …}], \"callsLeft\": [{\"calls\", \"runs\", \"inside\", "
    "\"shown\"}]}]}; evaluate the same without \"model\", with \"stages\": [{\"calls\" "
    "(null: whole sessions), \"auroc\", \"auprc\", \"brier\", \"ece\", …}]; explain "
    "{\"session\", \"agent\", \"calls\", \"comparedAfter\", \"why\", \"unfinished\", "
    "\"callsLeft\", \"contributions\"}. A measure is {\"value\", \"low\", \"high\"}.\n"
    "\n"
    "Exit codes: 0 done, 1 too few sessions or the file cannot be written, 2 usage, 3 a file is "
    "refused, 5 there is no database, model or session.\n"
    "Data goes to standard output, errors to standard error.";

}  // namespace

static int predict_command(const PredictOptions& options) {
  if (options.action == "train") return train_model(options);
  if (options.action == "evaluate") return evaluate_model(options);
  return explain_session(options);
}

void add_predict(CommandLine& line) {
  const auto options = std::make_shared<PredictOptions>();
  auto* command = line.app.add_subcommand(
      "predict", "Learn from ended sessions how running ones may end: train, evaluate, explain");
  command->add_option("action", options->action, "What to do")
      ->required()
      ->check(one_of("action", {"train", "evaluate", "explain"}));
  add_session(*command, options->choice);
  add_database(*command, options->sources);
  command
      ->add_option("--examples", options->examples,
                   "Learn from these examples of watchdog-score instead of own sessions")
      ->type_name("FILE");
  command->add_flag("--no-prior", options->no_prior,
                    "Start from zero, not from the weights of recorded runs");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([&line, options] {
    const bool explains = options->action == "explain";
    if (explains) need_session(options->choice);
    if (!explains && options->choice.last) throw CLI::ExcludesError("--last", options->action);
    if (!explains && !options->choice.named.empty())
      throw CLI::ExtrasError({options->choice.named});
    if (explains && !options->examples.empty()) throw CLI::ExcludesError("--examples", "explain");
    const auto settings = configured(options->sources);
    if (settings) options->database = database_of(*settings);
    line.code = settings ? predict_command(*options) : settings.error();
  });
  command->footer(predict_footer);
}

}  // namespace watchdog::monitor
