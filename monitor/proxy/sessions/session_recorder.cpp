// Turns observed requests and answers into reports. For each open exchange it keeps the reading
// of its answer; for each session its conversation, waits and totals. Time comes with the
// observations.
#include "proxy/sessions/session_recorder.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "codec/json.h"
#include "ingest/hook_answer.h"
#include "llm/early_end.h"
#include "llm/model_request.h"
#include "llm/provider.h"
#include "privacy/content.h"
#include "process/process_sample.h"
#include "proxy/sessions/answer_owners.h"
#include "proxy/sessions/attribution.h"
#include "proxy/sessions/conversation.h"
#include "proxy/sessions/observed_exchange.h"
#include "proxy/sessions/refusal.h"
#include "proxy/sessions/session_memory.h"
#include "text/typed.h"
#include "watchdog/history.h"
#include "watchdog/reasons.h"
#include "watchdog/repetition.h"

namespace watchdog::monitor {
namespace {

using How = ExchangeEnded::How;

/// Open ones. The engine has fewer connections than that.
constexpr std::size_t open_exchanges_max = 16'384;
/// A server that has no room says so within this time.
constexpr Millis refusal_time{1'000};
/// An elapsed time is reported again when it grew by this part.
constexpr int growth_parts = 8;
/// Answers whose sessions are remembered, for each session that may be.
constexpr std::size_t answers_per_session = 4;

Report said(ReportKind kind, std::string name = {}, std::string content = {}) {
  Report report;
  report.kind = kind;
  report.name = std::move(name);
  report.content = std::move(content);
  return report;
}

/// A refused client has given up if it asks nothing for this time, and for three times the interval
/// of its latest tries. After a limit with an end, this time begins at that end.
constexpr Millis retry_wait{60'000};
constexpr int retry_wait_gaps = 3;

std::string in_seconds(Millis time) {
  return std::to_string((time.count() + 999) / 1'000) + " s";
}

/// These agents run as long as their turn, and offer tools with each request of their own. Requests
/// without tools are their helpers': they name the conversation, sum it up, or ask who is next.
bool is_coding_agent(std::string_view agent) {
  return agent == "claude-code" || agent == "codex" || agent == "gemini-cli" ||
         agent == "opencode" || agent == "copilot-cli";
}

/// `memory`: of its session; null: not known.
bool is_of_helper(const ModelRequest& request, const Attribution& from,
                  const SessionMemory* memory) {
  if (request.is_helper || from.helper) return true;
  if (!request.readable || request.has_tools || !is_coding_agent(from.agent)) return false;
  // The beginning of its conversation does not show whose helper it is.
  return memory != nullptr ? memory->has_tools : from.by == AttributedBy::opening;
}

Report call_report(const ToolRequest& call) {
  auto report = said(ReportKind::tool_call, call.name, call.arguments);
  report.call_id = call.id;
  return report;
}

/// Returns the report that the agent has its answer, or will get none.
Report rest_after(const ObservedExchange& exchange, bool is_unread, const std::string& fault) {
  if (!fault.empty()) return said(ReportKind::idle, std::string(idle_reports::failed), fault);
  const auto& heard = exchange.heard();
  return said(ReportKind::idle, std::string(idle_reports::relayed),
              is_unread ? exchange.why_unread()
                        : std::string(early_end(heard.finish_reason, !heard.calls.empty())));
}

/// Charges the cost of an exchange to the owner's budgets. Returns the reports that follow.
std::vector<Report> charge(const ObservedExchange& exchange,
                           const SessionRecorder::Options& options, WallTime now) {
  std::vector<Report> reports;
  if (!options.spending) return reports;
  for (const auto& notice : options.spending->charge(exchange.spender, exchange.spent(), now)) {
    if (notice.per == BudgetScope::session) {
      reports.push_back(said(ReportKind::budget, notice.budget));
      reports.back().detail = notice.figures;
    }
    if (!notice.percent) continue;
    reports.push_back(said(ReportKind::message, "notification", notice.text));
    if (options.on_spending) options.on_spending(exchange.session, notice.text);
  }
  return reports;
}

}  // namespace

struct SessionRecorder::State {
  Options options;
  SessionMemories memories;
  std::map<std::uint64_t, ObservedExchange> exchanges;
  AnswerOwners owners;
  std::set<std::string> refused;  ///< Sessions whose latest request came to nothing.

  // Reports of the present call.
  std::vector<Batch> batches;
  WallTime now{};

  explicit State(Options given)
      : options(std::move(given)),
        memories(options.sessions_max),
        owners(answers_per_session * options.sessions_max) {}

  void say(const std::string& session, Report report) {
    report.at = now;
    if (batches.empty() || batches.back().session != session) {
      batches.push_back({.session = session,
                         .creation = Creation::attach,
                         .spec = memories.at(session).spec,
                         .reports = {},
                         .by = ReportOrigin::proxy});
    }
    batches.back().reports.push_back(std::move(report));
  }

  // Heartbeats.

  /// Returns the totals of the session's requests so far.
  Counters counters_of(SessionMemory& memory) const {
    double read = 0;
    double prompt = 0;
    double tokens = memory.tokens;
    for (const auto number : memory.open) {
      const auto& exchange = exchanges.at(number);
      tokens += exchange.tokens();
      read += static_cast<double>(exchange.heard().prompt_read);
      prompt += static_cast<double>(exchange.heard().prompt_tokens);
    }
    memory.tokens_reported = std::max(memory.tokens_reported, tokens);
    Counters counters{{"tokens", memory.tokens_reported}};
    if (read > 0) counters.emplace_back("prompt_read", read);
    if (prompt > 0) counters.emplace_back("prompt_tokens", prompt);
    return counters;
  }

  void beat(const std::string& session, SessionMemory& memory, Source source, std::string phase,
            std::optional<std::int64_t> iteration = {}) {
    auto report = said(ReportKind::heartbeat);
    report.detail = Heartbeats{.iteration_first = iteration,
                               .iteration = iteration,
                               .phase = std::move(phase),
                               .source = source,
                               .counters = counters_of(memory)};
    memory.beat_at = now;
    say(session, std::move(report));
  }

  /// Returns true after the interval, or if the wall clock was set back.
  [[nodiscard]] bool is_due(WallTime reported) const {
    return now - reported >= options.beat_every || now < reported;
  }

  void beat_if_due(const std::string& session, SessionMemory& memory) {
    if (is_due(memory.beat_at)) beat(session, memory, Source::relay, "model");
  }

  // One exchange.

  void begin(std::uint64_t number, const ExchangeBegan& began) {
    const auto request = model_request_of(began);
    const auto owner = [this](std::string_view answer) { return owners.owner_of(answer); };
    const auto from =
        attribution_of(began, request ? &*request : nullptr, owner, options.session_of_trace);
    if (!request && from.by > AttributedBy::native) return;
    const auto* known = memories.find(from.session);
    const bool helps = request && is_of_helper(*request, from, known);
    // Helpers alone do not make a session.
    if (helps && known == nullptr) return;
    auto& memory = memories.of(from.session, from, request ? request->model : std::string(),
                               began.server, is_loopback(began.peer) ? std::string() : began.peer);
    if (!request && began.is_tunnel) begin_tunnel(number, from.session, memory);
    const auto report_unread = [&] {
      if (!began.unread.empty() && !std::exchange(memory.has_unread, true))
        say(from.session, said(ReportKind::message, "server", began.unread));
    };
    if (!request) {
      report_unread();
      return beat(from.session, memory, Source::relay, {});
    }

    if (exchanges.size() >= open_exchanges_max) forget(exchanges.begin()->first);
    // A request for a session whose process is gone begins it again, but not that process's own.
    const bool restarts = (!began.process || began.process != memory.process) && is_dead(memory);
    if (restarts) {
      memory.process.reset();
      memory.once_seen.reset();
    }
    if (std::exchange(memory.is_over, false) || restarts) {
      auto start = said(ReportKind::start);
      start.detail = ProcessFacts{};
      say(from.session, std::move(start));
    }
    auto& exchange = exchanges[number];
    exchange.session = from.session;
    exchange.server = began.server;
    exchange.final = from.final;
    exchange.helps = helps;
    exchange.process = began.process;
    exchange.restarts = restarts;
    exchange.spender = spender_of(began, from, request->model);
    exchange.request_bytes = began.body ? static_cast<std::int64_t>(began.body->size()) : 0;
    memory.open.push_back(number);
    if (from.compacts) say(from.session, said(ReportKind::compaction));
    memory.compacts |= from.compacts;
    if (helps) return;
    memory.has_tools |= request->has_tools;
    report_unread();
    const bool gave_up = memory.waits_for == wait_reports::retry;
    if (gave_up) {
      memory.waits_for.clear();
      say(from.session, said(ReportKind::resume, std::string(wait_reports::retry)));
    }
    const auto news = memory.conversation.ask(*request);
    exchange.thread = news.thread;
    ++memory.requests;
    report_news(from.session, news, gave_up);

    // A repeated request without an answer, or for another answer, is not an iteration.
    const bool goes_round = !news.redirected && (!news.repeated || news.calling);
    // A helper's request does not complete calls.
    const bool alone = !memory.conversation.has_open_calls(news.thread);
    beat(from.session, memory, goes_round ? Source::loop : Source::relay, "model",
         goes_round && alone ? std::optional(memory.requests) : std::nullopt);
  }

  /// Its bytes are signs of life; other sources report their meaning.
  void begin_tunnel(std::uint64_t number, const std::string& session, SessionMemory& memory) {
    auto& exchange = exchanges[number];
    exchange.session = session;
    exchange.helps = exchange.is_tunnel = true;
    memory.open.push_back(number);
    say(session, said(ReportKind::message, "server",
                      "a WebSocket passes through unread: calls, answers, tokens and errors in it "
                      "are not seen here; the agent's hooks can report them"));
  }

  /// Requests of the agent itself are under way.
  [[nodiscard]] bool asks(const SessionMemory& memory) const {
    return std::ranges::any_of(memory.open,
                               [this](auto number) { return !exchanges.at(number).helps; });
  }

  /// `gave_up`: the client hung up on its request before this one.
  void report_news(const std::string& session, const News& news, bool gave_up) {
    for (const auto& call : news.calls) say(session, call_report(call));
    for (const auto& result : news.results) {
      auto report = said(result.is_error ? ReportKind::error : ReportKind::tool_result, result.name,
                         result.content);
      report.call_id = result.call_id;
      say(session, std::move(report));
    }
    // Before the words: input begins something new, so a hook's compaction would not be the same.
    if (news.compacted && !std::exchange(memories.at(session).compacts, false))
      say(session, said(ReportKind::compaction));
    // Words beside results are a comment; alone, they are new input.
    if (!news.words.empty() && !news.results.empty())
      say(session, said(ReportKind::message, "user", news.words));
    if (!news.words.empty() && news.results.empty()) {
      const auto own = typed(news.words);
      say(session,
          said(ReportKind::state_change, "input", own.empty() ? news.words : std::string(own)));
    }
    if (!news.repeated) return;
    const bool asks_again = news.answered || gave_up;
    say(session, said(ReportKind::retry, asks_again ? std::string(asked_again) : std::string()));
  }

  void report_process(const std::string& session, const ProcessFacts& process) {
    memories.at(session).process = process;
    auto report = said(ReportKind::start, std::string(found_process));
    report.detail = process;
    say(session, std::move(report));
  }

  /// A program that asks once may end with its answer, and its session goes on without it. One that
  /// asks again is the session's agent, and so is a coding agent with its first request.
  void see_process(const ObservedExchange& exchange) {
    if (!exchange.process) return;
    auto& memory = memories.at(exchange.session);
    if (memory.process == exchange.process) return;
    if (memory.once_seen == exchange.process || is_coding_agent(memory.spec.agent)) {
      memory.once_seen = exchange.process;
      report_process(exchange.session, *exchange.process);
    } else {
      memory.once_seen = exchange.process;
    }
  }

  /// Ends the wait for the server as soon as that takes a request, and does not refuse it at once.
  void resume_if_accepted(std::uint64_t number, ObservedExchange& exchange) {
    auto& memory = memories.at(exchange.session);
    if (memory.waits_for.empty() || !exchange.reached || exchange.waits || exchange.helps) return;
    const bool is_answered = exchange.status > 0 && exchange.status < 400;
    // To refuse a key or a limit may take any time.
    const bool is_accepted = memory.waits_for == backend && exchange.status == 0 &&
                             now - *exchange.reached >= refusal_time;
    if (!is_answered && !is_accepted) return;
    memory.waits_for.clear();
    if (exchange.evidence) return;  // that ended it
    const Evidence resumed{.state = ServerState::unknown};
    exchange.evidence = resumed;
    exchange.evidence_at = exchange.evidence_since = now;
    auto report = said(ReportKind::evidence, {}, "the server takes requests again");
    report.call_id = name_of_request(number);
    report.detail = resumed;
    say(exchange.session, std::move(report));
  }

  void record(ObservedExchange& exchange, const AnswerPiece& piece) {
    exchange.feed(piece.bytes);
    if (exchange.helps) return;
    if (exchange.answer && exchange.is_read) report_text_repetitions(exchange, {});
    beat_if_due(exchange.session, memories.at(exchange.session));
  }

  /// Reports the ones that were not reported, after the text's last piece.
  void report_text_repetitions(ObservedExchange& exchange, std::string_view last) {
    (void)exchange.loop->feed(last);
    for (; exchange.text_repeats < exchange.loop->hits(); ++exchange.text_repeats)
      say(exchange.session,
          said(ReportKind::text_repetition, {}, std::string(exchange.loop->repeated())));
  }

  void report_evidence(std::uint64_t number, ObservedExchange& exchange, const Evidence& evidence,
                       const std::string& why) {
    if (exchange.helps || (!exchange.evidence && evidence.state <= ServerState::unknown)) return;
    const bool is_new = !exchange.evidence || exchange.evidence->state != evidence.state;
    const bool moved = is_new || *exchange.evidence != evidence;
    // The time without movement is reported, too, less often the longer it is.
    const bool grows = exchange.why != why &&
                       now - exchange.evidence_at >= (now - exchange.evidence_since) / growth_parts;
    if (!is_new && !((moved || grows) && is_due(exchange.evidence_at))) return;
    if (moved) exchange.evidence_since = now;
    exchange.evidence = evidence;
    exchange.why = why;
    exchange.evidence_at = now;
    const bool is_lost =
        evidence.state == ServerState::gone || evidence.state == ServerState::restarted;
    // Its answer so far: reported later, it would end the wait.
    if (is_lost && !exchange.waits)
      beat(exchange.session, memories.at(exchange.session), Source::relay, {});
    auto report = said(ReportKind::evidence, {}, why);
    report.call_id = name_of_request(number);
    report.detail = evidence;
    say(exchange.session, std::move(report));
    if (is_lost) wait(exchange, backend, why);
    if (is_busy(evidence.state)) memories.at(exchange.session).waits_for.clear();
  }

  void wait(ObservedExchange& exchange, std::string_view what, const std::string& why) {
    if (std::exchange(exchange.waits, true)) return;
    auto& memory = memories.at(exchange.session);
    memory.waits_for = what;
    if (!exchange.reached) see_process(exchange);
    // Some errors name the server themselves.
    const bool is_named = exchange.server.empty() || why.find(exchange.server) != std::string::npos;
    memory.refused_why = is_named ? why : "the model server at " + exchange.server + ": " + why;
    memory.refused_gap = std::max(now - memory.refused_at.value_or(now), Millis{0});
    memory.refused_at = now;
    if (exchange.retry_after)
      memory.refused_why += "; the server asks for a pause of " + in_seconds(*exchange.retry_after);
    auto report = said(ReportKind::wait, std::string(what), memory.refused_why);
    report.until = exchange.end_of_wait(what, now);
    if (what != backend) report.provider = provider_of_url(exchange.server);
    memory.refused_pause = report.until ? *report.until - now : Millis{0};
    memory.refused_reason = reason_of_refusal(what, exchange.status, exchange.reached.has_value());
    refused.insert(exchange.session);
    say(exchange.session, std::move(report));
  }

  [[nodiscard]] bool is_dead(const SessionMemory& memory) const {
    return memory.process && options.is_gone && options.is_gone(*memory.process);
  }

  /// Ends waits of clients that were refused and do not ask again.
  void notice_given_up() {
    for (auto at = refused.begin(); at != refused.end();) {
      auto* memory = memories.find(*at);
      const bool waits = memory != nullptr && !memory->waits_for.empty() && memory->refused_at;
      if (waits && !has_given_up(*at, *memory)) {
        ++at;
        continue;
      }
      if (waits) {
        memory->waits_for.clear();
        memory->refused_at.reset();
      }
      at = refused.erase(at);
    }
  }

  /// Says so, too: an agent that ended had no answer, and one that lives needs a person.
  bool has_given_up(const std::string& session, SessionMemory& memory) {
    if (asks(memory)) {
      memory.refused_at = now;
      return false;
    }
    const bool hung_up = memory.waits_for == wait_reports::retry;
    if (!hung_up && is_dead(memory)) {
      auto end = said(ReportKind::end);
      end.detail = Outcome{.kind = OutcomeKind::failed,
                           .reason = std::string(memory.refused_reason),
                           .error = memory.refused_why};
      say(session, std::move(end));
      memory.is_over = true;
      return true;
    }
    const auto bound = std::max(
        {retry_wait, retry_wait_gaps * memory.refused_gap, memory.refused_pause + retry_wait});
    // A login may take any time.
    if (memory.waits_for == wait_reports::login || now - *memory.refused_at < bound) return false;
    const auto why = memory.refused_why + "; no request for " + in_seconds(bound);
    say(session, hung_up ? said(ReportKind::idle, std::string(idle_reports::relayed), why)
                         : said(ReportKind::wait, std::string(wait_reports::input), why));
    return true;
  }

  void end(std::uint64_t number, ObservedExchange& exchange, const ExchangeEnded& ended) {
    const std::string session = exchange.session;
    auto& memory = memories.at(session);
    if (exchange.answer) exchange.answer->end();
    for (auto& report : charge(exchange, options, now)) say(session, std::move(report));
    if (exchange.helps) return end_helper(number, exchange, ended);
    if (exchange.answer && exchange.is_read) report_text_repetitions(exchange, "\n");
    const auto fault = exchange.fault(ended);
    // It will be found dead, in the middle of this.
    if (ended.client_died && exchange.process) report_process(session, *exchange.process);
    auto heard = exchange.heard();
    const bool is_whole = fault.text.empty() && exchange.is_read && heard.complete && !heard.lost;
    if (!is_whole) heard.calls.clear();
    using Answer = Conversation::Answer;
    auto answer = is_whole ? Answer::whole : Answer::unread;
    if (!fault.text.empty()) answer = fault.is_redirect ? Answer::elsewhere : Answer::none;
    memory.conversation.answer(exchange.thread, answer, heard.calls, name_of_request(number));

    // With what it cost, before anything says that it is over.
    if (heard.calls.empty()) beat(session, memory, Source::relay, {});
    if (is_whole) report_answer(exchange, memory, heard);
    if (is_whole) owners.remember(heard.id, session);
    const bool is_ours =
        ended.how == How::stopped || ended.how == How::denied || ended.how == How::over_budget;
    if (!fault.text.empty() && !is_ours)
      say(session, said(ReportKind::message, ended.how == How::client_gone ? "client" : "server",
                        fault.text));
    if (ended.how == How::over_budget) {
      exchange.server.clear();  // it did not refuse anything
      exchange.limit_end = ended.until;
    }
    if (!fault.waits_for.empty()) wait(exchange, fault.waits_for, fault.text);
    if (ended.how == How::over_budget) memory.refused_reason = reasons::budget_exhausted;
    if (fault.text.empty()) memory.refused_at.reset();

    memory.tokens += exchange.tokens();
    memory.is_closing |= exchange.final;
    std::erase(memory.open, number);
    const bool closes = !asks(memory) && std::exchange(memory.is_closing, false);
    const bool rests = ended.how != How::stopped && !exchange.waits && !ended.client_died;
    if (ended.how == How::denied && !exchange.restarts) {
      say(session, cancelled_end(ended.cancel));  // without its model, its agent cannot go on
      memory.waits_for.clear();
    } else if (!closes && rests && !asks(memory) && !memory.conversation.has_open_calls()) {
      if (ended.how == How::client_gone && !fault.text.empty()) {
        wait_for_retry(exchange, memory, fault.text);
      } else {
        const bool is_answered = ended.how == How::answered;
        say(session, rest_after(exchange, answer == Answer::unread,
                                is_answered ? fault.text : std::string()));
      }
    }
    // Last: what was slow is not to be judged by its pace before it is known to be over.
    if (exchange.evidence && exchange.evidence->state != ServerState::over)
      report_evidence(number, exchange, Evidence{.state = ServerState::over}, {});
    forget(number);
    if (closes) {
      auto report = said(ReportKind::end);
      report.detail = Outcome{.kind = OutcomeKind::completed,
                              .reason = std::string(reasons::task_complete),
                              .error = {}};
      say(session, std::move(report));
      memory.is_over = true;
      memory.waits_for.clear();
    }
  }

  /// The client hung up: it may ask again at once. If it does not, the turn is over without an
  /// answer (has_given_up).
  void wait_for_retry(const ObservedExchange& exchange, SessionMemory& memory,
                      const std::string& why) {
    memory.waits_for = wait_reports::retry;
    memory.refused_why = why;
    memory.refused_gap = std::max(now - memory.refused_at.value_or(now), Millis{0});
    memory.refused_at = now;
    memory.refused_pause = Millis{0};
    refused.insert(exchange.session);
    say(exchange.session, said(ReportKind::wait, std::string(wait_reports::retry), why));
  }

  /// Only its cost counts, reported with the agent's next sign. A denied WebSocket ends the session
  /// like a denied request.
  void end_helper(std::uint64_t number, const ObservedExchange& exchange,
                  const ExchangeEnded& ended) {
    auto& memory = memories.at(exchange.session);
    memory.tokens += exchange.tokens();
    if (exchange.is_tunnel && ended.how == How::denied) {
      say(exchange.session, cancelled_end(ended.cancel));
      memory.waits_for.clear();
    }
    forget(number);
  }

  void report_answer(const ObservedExchange& exchange, SessionMemory& memory,
                     const ObservedAnswer& heard) {
    if (!heard.text.empty()) {
      auto report = said(ReportKind::message, "assistant", heard.text);
      // Repetition that was found while it streamed is not counted again.
      mark(report);
      if (auto* marks = std::get_if<Marks>(&report.detail)) {
        marks->text_repeats = 0;
        marks->promises &= heard.text_bytes == static_cast<std::int64_t>(heard.text.size());
      }
      say(exchange.session, std::move(report));
    }
    for (const auto& call : heard.calls) say(exchange.session, call_report(call));
    if (!heard.calls.empty()) beat(exchange.session, memory, Source::relay, "tools");
  }

  void forget(std::uint64_t number) {
    const auto found = exchanges.find(number);
    std::erase(memories.at(found->second.session).open, number);
    exchanges.erase(found);
  }
};

SessionRecorder::SessionRecorder(Options options)
    : state_(std::make_unique<State>(std::move(options))) {}
SessionRecorder::~SessionRecorder() = default;

std::vector<Batch> SessionRecorder::record(Observation observation) {
  State& state = *state_;
  state.now = observation.at;
  const auto number = observation.exchange;
  if (const auto* began = std::get_if<ExchangeBegan>(&observation.what)) {
    state.begin(number, *began);
    return std::exchange(state.batches, {});
  }
  const auto found = state.exchanges.find(number);
  if (found == state.exchanges.end()) return {};
  auto& exchange = found->second;
  if (std::holds_alternative<ExchangeReached>(observation.what)) {
    exchange.reached = state.now;
    state.see_process(exchange);
  } else if (const auto* answer = std::get_if<AnswerBegan>(&observation.what)) {
    exchange.begin_answer(*answer);
    state.resume_if_accepted(number, exchange);
  } else if (const auto* piece = std::get_if<AnswerPiece>(&observation.what)) {
    state.record(exchange, *piece);
  } else if (std::holds_alternative<AnswerSkipped>(observation.what)) {
    exchange.is_read = false;
    if (exchange.is_tunnel)
      state.beat_if_due(exchange.session, state.memories.at(exchange.session));
  } else if (const auto* seen = std::get_if<ExchangeEvidence>(&observation.what)) {
    state.report_evidence(number, exchange, seen->evidence, seen->why);
  } else if (const auto* ended = std::get_if<ExchangeEnded>(&observation.what)) {
    state.end(number, exchange, *ended);
  }
  return std::exchange(state.batches, {});
}

std::string SessionRecorder::owner_of(std::string_view answer) const {
  return state_->owners.owner_of(answer);
}

std::vector<Batch> SessionRecorder::beat(WallTime now) {
  State& state = *state_;
  state.now = now;
  state.notice_given_up();
  for (auto& [number, exchange] : state.exchanges) {
    if (exchange.helps) continue;
    state.resume_if_accepted(number, exchange);
    state.beat_if_due(exchange.session, state.memories.at(exchange.session));
  }
  return std::exchange(state.batches, {});
}

}  // namespace watchdog::monitor
