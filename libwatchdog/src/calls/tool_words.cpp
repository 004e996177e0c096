// Writes an outcome for the model. The head states what happened, what was changed, and whether the
// call still runs. The advice, a note and the output follow. The text and the JSON share head and
// advice. Texts of other parties are redacted and cut, but what the tool itself says is only cut,
// so the words before the output keep their bound. Partial output shows its last characters. A
// failure without a message shows its whole output.
#include <algorithm>

#include "privacy/content.h"
#include "privacy/redaction.h"
#include "text/json_writer.h"
#include "text/utf8.h"
#include "watchdog/tool_outcome.h"

namespace watchdog {
namespace {

// Together with our own words these stay below the 1,200 characters that are promised.
constexpr std::size_t name_chars_max = 64;
constexpr std::size_t quoted_chars_max = 600;
constexpr std::size_t reason_chars_max = 300;
constexpr std::size_t note_chars_max = 150;

constexpr std::size_t partial_chars_max = 2'000;
constexpr std::size_t id_chars_max = 256;

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

/// Text of the tool: readable, with a note where it is cut. Its secrets stay, as those of the
/// output do (see `presented`).
std::string said(std::string_view text, std::size_t chars_max) {
  auto words = readable(text);
  const auto chars = characters_in(words);
  if (chars <= chars_max) return words;
  return std::string(first_characters(words, chars_max)) + "... [" +
         std::to_string(chars - chars_max) + " more chars]";
}

/// The same of another party: without secrets.
std::string quoted(std::string_view text, std::size_t chars_max) {
  return said(redact(readable(text)), chars_max);
}

/// A name that a model made up may be anything; it stays within its quotes.
std::string name_of(const CallReport& report) {
  auto name = quoted(report.call.tool, name_chars_max);
  std::replace_if(
      name.begin(), name.end(),
      [](char byte) { return static_cast<unsigned char>(byte) < ' ' || byte == '"'; }, '?');
  return "Tool \"" + name + "\"";
}

/// Whole seconds where it is some; else with a decimal, or what is less in ms.
std::string seconds(Millis time) {
  const auto ms = std::clamp<std::int64_t>(time.count(), 0, INT64_MAX - 500);
  if (ms > 0 && ms < 1'000) return std::to_string(ms) + "ms";
  if (ms >= 10'000 || ms % 1'000 == 0) return std::to_string((ms + 500) / 1'000) + "s";
  return std::to_string(ms / 1'000) + "." + std::to_string(ms % 1'000 / 100) + "s";
}

std::string partial_words(const Output& partial) {
  if (partial.text.empty()) return {};
  const auto total = partial.truncation ? partial.truncation->total : characters_in(partial.text);
  auto shown = last_characters(partial.text, partial_chars_max);
  shown.remove_prefix(secret_around(partial.text, partial.text.size() - shown.size()).end -
                      (partial.text.size() - shown.size()));
  std::string words = "\nPartial output";
  std::string how;
  if (const auto count = characters_in(shown); count < total) {
    const auto bytes = partial.truncation ? partial.truncation->bytes : 0;
    how = "last " + std::to_string(count) +
          (bytes > 0 ? " chars of " + std::to_string(bytes) + " bytes"
                     : " of " + std::to_string(total) + " chars");
  }
  if (const auto& kept = partial.artifact) {
    how += how.empty() ? "" : ", ";
    how += kept->kept < kept->bytes ? "of it " + std::to_string(kept->kept) + " bytes are stored: "
                                    : "full: ";
    how += kept->handle;
  }
  if (!how.empty()) words += " (" + how + ")";
  return words.append(":\n").append(shown);
}

std::string effect_words(EffectState effects, RetryAdvice retry) {
  std::string words = "\nEffects: " + std::string(name_of(effects));
  switch (effects) {
    case EffectState::none:
      return words + " - nothing was changed.";
    case EffectState::complete:
      words += " - what it was to do is done.";
      break;
    case EffectState::partial:
      words += " - a part of it is done.";
      break;
    case EffectState::unknown:
      words += " - it may have partly run.";
      break;
  }
  switch (retry) {
    case RetryAdvice::safe:
      return words + " It may be repeated.";
    case RetryAdvice::do_not:
      return words + " Do not repeat it.";
    default:
      return words + " Check the state before repeating it.";
  }
}

std::string state_words(bool still_running) {
  return still_running ? "\nState: still running in the background; its results will be ignored."
                       : "\nState: ended.";
}

std::string who(const CancelReason& why) {
  const auto text = quoted(why.text, reason_chars_max);
  if (why.origin == CancelOrigin::parent && !text.empty()) return text;
  return std::string(name_of(why.scope)) +
         (why.scope == CancelScopeKind::call ? " cancelled by " : " aborted by ") +
         std::string(name_of(why.origin)) + (text.empty() ? "" : " (" + text + ")");
}

std::string_view suggestion_for(const ToolOutcome& outcome) {
  if (const auto* timeout = std::get_if<ToolTimeout>(&outcome)) {
    if (timeout->kind == TimeoutKind::queue) return "repeat it later, or do something else first";
    if (timeout->kind == TimeoutKind::budget) return "answer with what you have";
    switch (timeout->retry) {
      case RetryAdvice::safe:
        return "repeat it with less to do, or with a larger _timeout (ms)";
      case RetryAdvice::do_not:
        return timeout->effects == EffectState::none
                   ? "do not repeat it; do something else"
                   : "do not repeat it; check what it did with a read-only call";
      default:
        return "check the result with a read-only call before you repeat it";
    }
  }
  if (std::holds_alternative<ToolCancelled>(outcome)) return "go on without it";
  if (const auto* denied = std::get_if<ToolDenied>(&outcome)) {
    switch (denied->reason) {
      case DenyReason::write_denied:
        return "propose something else, or ask what is wrong with it";
      case DenyReason::confirmation_expired:
        return "go on with what needs no confirmation";
      case DenyReason::unknown_tool:
        return "use one of the tools you were given";
      case DenyReason::invalid_arguments:
        return "write the arguments as the tool's schema says";
      case DenyReason::stale_precondition:
        return "read it again, merge your change, and retry";
      case DenyReason::deadline:
      case DenyReason::budget:
      case DenyReason::final_turn:
        return "answer now with what you have";
      case DenyReason::duplicate_call:
        return "use the result of the first one";
      case DenyReason::disabled:
        return "use another tool, or call it again in your next message";
      case DenyReason::policy:
      case DenyReason::quarantined:
      case DenyReason::saturated:
      case DenyReason::turn_cancelled:
        break;
    }
    return "use another tool";
  }
  switch (std::get<ToolFailure>(outcome).kind) {
    case FailureKind::tool_error:
    case FailureKind::exit_nonzero:
    case FailureKind::killed_by_signal:
      return "read what it says and change the call";
    case FailureKind::exception:
      return "change the call, or use another tool";
    case FailureKind::spawn_failed:
    case FailureKind::internal:
      break;
  }
  return "use another tool, or repeat it later";
}

/// What came of a call that is said to stand still; empty: nothing did.
std::string stale_words(const CallReport& report) {
  const auto stale = report.progress_rejected;
  if (stale <= 0) return {};
  const auto all = stale + report.progress_accepted;
  const std::string_view noun = report.output_bytes > 0 ? "pieces of output" : "reports";
  return " " + (stale == all ? "Its " : std::to_string(stale) + " of its ") + std::to_string(all) +
         " " + std::string(noun) + " said nothing new: the same as before.";
}

std::string timeout_head(const CallReport& report, const ToolTimeout& timeout) {
  const auto name = "[TIMEOUT] " + name_of(report);
  switch (timeout.kind) {
    case TimeoutKind::idle:
      return name + " made no progress for " + seconds(timeout.limit) + " (ran " +
             seconds(timeout.elapsed) + ")" + (timeout.still_running ? "." : " and was stopped.") +
             stale_words(report);
    case TimeoutKind::queue:
      return name + " was not started: it waited " + seconds(timeout.limit) +
             " for other calls to finish.";
    case TimeoutKind::budget:
      return name + " was ended after " + seconds(timeout.limit) +
             ": the time of this task is nearly used up.";
    case TimeoutKind::hard:
    case TimeoutKind::ceiling:
      break;
  }
  const bool has_said = report.output_bytes > 0 || report.progress_accepted > 0;
  return name + (has_said ? " did not end within " : " did not respond within ") +
         seconds(timeout.limit) + "." +
         (report.output_bytes > 0 ? " It printed " + std::to_string(report.output_bytes) + " bytes."
                                  : "");
}

std::string failure_head(const CallReport& report, const ToolFailure& failure) {
  const auto name = "[ERROR] " + name_of(report);
  const auto message = failure.kind == FailureKind::tool_error
                           ? said(failure.message, quoted_chars_max)
                           : quoted(failure.message, quoted_chars_max);
  const auto sentence = message.empty() ? "" : " " + message;
  if (failure.kind == FailureKind::exit_nonzero && failure.exit_code) {
    return name + " exited with code " + std::to_string(*failure.exit_code) + "." + sentence;
  }
  if (failure.kind == FailureKind::killed_by_signal && failure.exit_code) {
    return name + " was killed by signal " + std::to_string(*failure.exit_code - 128) + " (" +
           std::to_string(*failure.exit_code) + ")." + sentence;
  }
  const auto what = failure.kind == FailureKind::exception      ? " threw an exception"
                    : failure.kind == FailureKind::internal     ? " could not be carried out"
                    : failure.kind == FailureKind::spawn_failed ? " could not be started"
                                                                : " failed";
  return name + what + (message.empty() ? "." : ":" + sentence);
}

/// Returns the text before the output; bounded.
std::string head_of(const CallReport& report) {
  return std::visit(
      Overloaded{[](const ToolExecutionResult&) { return std::string(); },
                 [](const ToolArtifactReference&) { return std::string(); },
                 [&](const ToolFailure& failure) { return failure_head(report, failure); },
                 [&](const ToolTimeout& timeout) {
                   auto words = timeout_head(report, timeout);
                   if (timeout.kind != TimeoutKind::queue) {
                     words += effect_words(timeout.effects, timeout.retry);
                     words += state_words(timeout.still_running);
                   }
                   return words;
                 },
                 [&](const ToolCancelled& cancelled) {
                   const auto name = "[CANCELLED] " + name_of(report);
                   if (!cancelled.started)
                     return name + " was not started: " + who(cancelled.why) + ".";
                   return name + " was interrupted after " + seconds(cancelled.elapsed) + ": " +
                          who(cancelled.why) +
                          ".\nEffects: " + std::string(name_of(cancelled.effects)) + "." +
                          state_words(cancelled.still_running);
                 },
                 [&](const ToolDenied& denied) {
                   return "[DENIED] " + name_of(report) + ": " +
                          quoted(denied.message, quoted_chars_max) + ".";
                 }},
      report.outcome);
}

const Output* output_of(const ToolOutcome& outcome) {
  return std::visit(
      Overloaded{[](const ToolExecutionResult& result) { return &result.output; },
                 [](const ToolArtifactReference& result) { return &result.preview; },
                 [](const ToolFailure& failure) { return &failure.partial; },
                 [](const ToolTimeout& timeout) { return &timeout.partial; },
                 [](const ToolCancelled& cancelled) { return &cancelled.partial; },
                 [](const ToolDenied&) { return static_cast<const Output*>(nullptr); }},
      outcome);
}

std::string_view kind_of(const ToolOutcome& outcome) {
  return std::visit(
      Overloaded{[](const ToolFailure& failure) { return name_of(failure.kind); },
                 [](const ToolTimeout& timeout) { return name_of(timeout.kind); },
                 [](const ToolCancelled& cancelled) { return name_of(cancelled.why.origin); },
                 [](const ToolDenied& denied) { return name_of(denied.reason); },
                 [&](const auto&) { return name_of(outcome); }},
      outcome);
}

void write_output(JsonWriter& out, const Output& output) {
  out.field("output", output.text);
  if (output.truncation) {
    out.key("truncation").open_object();
    out.field("total", static_cast<std::int64_t>(output.truncation->total));
    out.field("shown", static_cast<std::int64_t>(output.truncation->shown));
    out.field("how", output.truncation->how).close_object();
  }
  if (output.artifact) {
    out.key("artifact").open_object().field("id", output.artifact->handle);
    out.field("sha256", output.artifact->sha256);
    out.field("bytes", static_cast<std::int64_t>(output.artifact->bytes));
    out.field("media_type", output.artifact->media_type).close_object();
  }
  if (!output.artifact_error.empty()) {
    out.field("artifact_error", quoted(output.artifact_error, reason_chars_max));
  }
}

void write_seconds(JsonWriter& out, std::string_view key, Millis time) {
  out.key(key).value(static_cast<double>(time.count()) / 1'000.0);
}

}  // namespace

std::string_view name_of(const ToolOutcome& outcome) noexcept {
  constexpr std::string_view names[] = {"result",  "artifact",  "failure",
                                        "timeout", "cancelled", "denied"};
  return names[outcome.index()];
}

bool is_error(const ToolOutcome& outcome) noexcept {
  return !std::holds_alternative<ToolExecutionResult>(outcome) &&
         !std::holds_alternative<ToolArtifactReference>(outcome);
}

std::string render_for_model(const CallReport& report) {
  const auto& outcome = report.outcome;
  auto words = head_of(report);
  if (!words.empty() && is_error(outcome)) {
    words.append("\nOptions: ").append(suggestion_for(outcome)).append(".");
  }
  const auto add_line = [&](const std::string& line) {
    if (!words.empty()) words += "\n";
    words += line;
  };
  if (!report.note.empty()) add_line("note: " + quoted(report.note, note_chars_max));
  const auto* output = output_of(outcome);
  if (output == nullptr) return words;
  const auto* failure = std::get_if<ToolFailure>(&outcome);
  // Without a message, the output shows the error.
  const bool is_whole = !is_error(outcome) ||
                        (failure != nullptr &&
                         (failure->message.empty() || failure->kind == FailureKind::exit_nonzero ||
                          failure->kind == FailureKind::killed_by_signal));
  if (!is_whole) return words + partial_words(*output);
  // A result that is empty should not look like one that was lost.
  if (output->text.empty() && words.empty()) return "(no output)";
  if (!output->text.empty()) add_line(output->text);
  if (!output->artifact_error.empty()) {
    add_line("[the whole output could not be kept: " +
             quoted(output->artifact_error, reason_chars_max) + "]");
  }
  return words;
}

std::string to_json(const CallReport& report) {
  const auto& outcome = report.outcome;
  JsonWriter out;
  out.open_object().field("tool", quoted(report.call.tool, name_chars_max));
  out.field("call_id", first_characters(report.call.id, id_chars_max));
  out.field("outcome", name_of(outcome));
  out.field("is_error", is_error(outcome)).field("kind", kind_of(outcome));
  if (is_error(outcome)) {
    out.field("error", head_of(report));
    const auto type = std::holds_alternative<ToolTimeout>(outcome)     ? "timeout"
                      : std::holds_alternative<ToolCancelled>(outcome) ? "cancelled"
                      : std::holds_alternative<ToolDenied>(outcome)    ? "denied"
                                                                       : "execution_error";
    out.field("error_type", type).field("suggestion", suggestion_for(outcome));
  }
  if (const auto* timeout = std::get_if<ToolTimeout>(&outcome)) {
    write_seconds(out, "limit_s", timeout->limit);
    write_seconds(out, "elapsed_s", timeout->elapsed);
    out.field("effects", name_of(timeout->effects)).field("retry", name_of(timeout->retry));
    out.field("still_running", timeout->still_running);
  } else if (const auto* cancelled = std::get_if<ToolCancelled>(&outcome)) {
    out.field("started", cancelled->started).field("effects", name_of(cancelled->effects));
    out.field("still_running", cancelled->still_running);
    write_seconds(out, "elapsed_s", cancelled->elapsed);
  } else if (const auto* failure = std::get_if<ToolFailure>(&outcome)) {
    if (failure->exit_code) out.field("exit_code", static_cast<std::int64_t>(*failure->exit_code));
  }
  if (!report.note.empty()) out.field("note", quoted(report.note, note_chars_max));
  if (!report.checkpoint.empty()) out.field("checkpoint", report.checkpoint);
  if (const auto* output = output_of(outcome);
      output != nullptr && (!output->text.empty() || output->artifact)) {
    write_output(out, *output);
  }
  out.close_object();
  return out.finish();
}

}  // namespace watchdog
