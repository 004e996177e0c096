#include "support/backend.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace watchdog::test {
namespace {

using nlohmann::json;

constexpr std::size_t logged_max = 20'000;
constexpr std::size_t logged_body_max = 1'048'576;
constexpr std::size_t prompts_max = 4;

std::string refusal_of(int status, std::string_view message, std::string_view type) {
  return json{{"error", {{"code", status}, {"message", message}, {"type", type}}}}.dump();
}

bool asks_for_no_key(std::string_view path) {
  return path.ends_with("/health") || path.ends_with("/models") || path.starts_with("/_");
}

}  // namespace

ModelBackend::ModelBackend(const Options& options) : options_(options) {
  const std::string wrong = apply(
      json::parse(options.scenario, nullptr, /*allow_exceptions=*/false), Instant{}, scenario_);
  if (!wrong.empty()) throw std::invalid_argument("scenario: " + wrong);
  scenario_text_ = options.scenario;
  live_ = std::make_unique<LiveServer>(LiveServer::Options{.model = scenario_.model,
                                                           .time_scale = options.time_scale,
                                                           .burn = options.burn,
                                                           .port_changed = [this](bool is_open) {
                                                             if (options_.is_child) std::_Exit(1);
                                                             is_open ? server_->come_back()
                                                                     : server_->leave();
                                                           }});
  if (scenario_.fault)
    live_->change([&](SimulatedServer& server) { server.fail(*scenario_.fault); });
  server_ =
      std::make_unique<ModelServer>([this](Exchange& exchange) { serve(exchange); }, options.port);
  live_->start();
}

ModelBackend::~ModelBackend() {
  live_->stop();
}

std::string ModelBackend::url() const {
  const std::string base = server_->base_url();
  return base.substr(0, base.size() - 3);
}

BackendScenario ModelBackend::scenario() {
  const std::lock_guard guard(mutex_);
  return scenario_;
}

std::string ModelBackend::change(const std::string& text) {
  json wanted = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Instant now = live_->now();
  BackendScenario changed;
  {
    const std::lock_guard guard(mutex_);
    if (std::string wrong = apply(wanted, now, scenario_); !wrong.empty()) return wrong;
    changed = scenario_;
    json response = json::parse(scenario_text_);
    response.merge_patch(wanted);
    response.erase("mend");
    if (child_.is_running()) response.erase("fault");  // each comes once
    scenario_text_ = response.dump();
  }
  live_->change([&](SimulatedServer& server) {
    if (changed.mend) server.mend();
    server.set(changed.model);
    if (changed.fault) server.fail(*changed.fault);
  });
  wanted.erase("kind");
  child_.configure(wanted.dump());
  return {};
}

// The functions below read requests.

void ModelBackend::serve(Exchange& exchange) {
  const ServedRequest& request = exchange.request();
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path == "/_scenario" || path == "/_log") return serve_control(exchange, path);
  if (path == "/_feed") return serve_feed(exchange);

  const auto logged =
      std::make_shared<Logged>(Logged{live_->now().time_since_epoch().count(), request, "open"});
  logged->request.body.resize(std::min(request.body.size(), logged_body_max));
  {
    const std::lock_guard guard(mutex_);
    log_.push_back(logged);
    if (log_.size() > logged_max) log_.pop_front();
  }
  const BackendScenario now = scenario();
  const Spoken spoken = spoken_at(path);
  const auto question = question_at(path, now.model.build);
  std::string state = "answered";
  if (!now.api_key.empty() && !asks_for_no_key(path) &&
      request.head.find(now.api_key) == std::string::npos) {
    exchange.respond(401, refusal_of(401, "Invalid API Key", "authentication_error"));
  } else if (request.method == "POST" && spoken.speaker != nullptr) {
    state = answer(exchange, spoken);
  } else if (question) {
    state = send_answer(exchange, path, *question);
  } else {
    exchange.respond(404, refusal_of(404, "File Not Found", "not_found_error"),
                     "application/json; charset=utf-8", server_header(now.model.build));
  }
  const std::lock_guard guard(mutex_);
  logged->state = state;
}

void ModelBackend::serve_control(Exchange& exchange, const std::string& path) {
  const ServedRequest& request = exchange.request();
  if (path == "/_log") {
    if (request.method == "DELETE") {
      const std::lock_guard guard(mutex_);
      log_.clear();
    }
    exchange.respond(200, log());
    return;
  }
  const std::string wrong = request.method == "POST" ? change(request.body) : "";
  if (!wrong.empty()) {
    exchange.respond(400, refusal_of(400, wrong, "invalid_request_error"));
    return;
  }
  exchange.respond(
      200,
      json{{"now_s", static_cast<double>(live_->now().time_since_epoch().count()) / 1'000}}.dump());
}

std::string ModelBackend::log() {
  json all = json::array();
  const std::lock_guard guard(mutex_);
  for (const LoggedAt& logged : log_)
    all.push_back({{"at_ms", logged->at_ms},
                   {"method", logged->request.method},
                   {"target", logged->request.target},
                   {"head", logged->request.head},
                   {"body", logged->request.body},
                   {"connection", logged->request.connection},
                   {"state", logged->state}});
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ModelBackend::send_answer(Exchange& exchange, const std::string& path,
                                      Question question) {
  const BackendScenario now = scenario();
  const auto gone = [&] { return exchange.is_gone(); };
  ServerView view;
  if (now.model.build == ServerBuild::ollama) {
    view.is_refused = !child_.is_running();
  } else {
    const auto response = live_->ask(question, gone);
    if (!response) return "cancelled";
    view = *response;
    if (view.is_refused) {
      exchange.reset();
      return "lost";
    }
  }
  ServerView since;
  if (question == Question::metrics) {
    const std::lock_guard guard(mutex_);
    since = std::exchange(metrics_before_, view);
  }
  const ServerResponse response = response_at(path, view, since, now.model, now.manners);
  return exchange.respond(response.status, response.body, response.content_type,
                          std::string(server_header(now.model.build)) + response.headers)
             ? "answered"
             : "cancelled";
}

// The functions below write answers.

std::int64_t ModelBackend::cached(const ScriptedAnswer& answer) {
  const std::lock_guard guard(mutex_);
  std::size_t alike = 0;
  for (const auto& prompt : prompts_) {
    const auto [here, there] = std::ranges::mismatch(prompt, answer.prompt);
    alike = std::max(alike, static_cast<std::size_t>(here - prompt.begin()));
  }
  prompts_.push_back(answer.prompt);
  if (prompts_.size() > prompts_max) prompts_.pop_front();
  if (!scenario_.cache || answer.prompt.empty()) return 0;
  return answer.prompt_tokens * static_cast<std::int64_t>(alike) /
         static_cast<std::int64_t>(answer.prompt.size());
}

std::string ModelBackend::answer(Exchange& exchange, const Spoken& spoken) {
  const BackendScenario now = scenario();
  const json body = json::parse(exchange.request().body, nullptr, /*allow_exceptions=*/false);
  if (body.is_discarded()) {
    exchange.respond(400, refusal_of(400, "the body is no JSON", "invalid_request_error"),
                     "application/json; charset=utf-8", server_header(now.model.build));
    return "answered";
  }
  ScriptedAnswer answer = answer_to(body, spoken.streams, now.lengths);
  if (spoken.embeds) {
    answer.tokens.clear();
    answer.stream = false;
  }
  answer.cached = cached(answer);
  const SimulatedRequest wanted{.prompt = answer.prompt_tokens,
                                .cached = answer.cached,
                                .answer = static_cast<std::int64_t>(answer.tokens.size()),
                                .stream = answer.stream,
                                .return_progress = answer.return_progress};
  const auto dialect = spoken.speaker(answer, now.model);
  const auto gone = [&] { return exchange.is_gone(); };
  if (now.model.build == ServerBuild::ollama) {
    ChildRequest request(child_port(), wanted);
    return write_answer(exchange, *dialect, answer, [&] { return request.wait_pieces(gone); });
  }
  const auto id = live_->submit(wanted);
  return write_answer(exchange, *dialect, answer, [&] { return live_->wait_pieces(id, gone); });
}

std::uint16_t ModelBackend::child_port() {
  const std::lock_guard guard(mutex_);
  const json response = {
      {"scenario", scenario_text_}, {"time_scale", options_.time_scale}, {"burn", options_.burn}};
  const auto port = child_.port(response.dump(), scenario_.model.slots, scenario_.model.context);
  json later = json::parse(scenario_text_);
  later.erase("fault");
  scenario_text_ = later.dump();
  return port;
}

std::string ModelBackend::write_answer(Exchange& exchange, Dialect& dialect,
                                       const ScriptedAnswer& answer, const Pieces& next) {
  const ServerBuild build = scenario().model.build;
  const auto header = server_header(build);
  bool streams = false;
  bool is_first = true;
  const auto begin = [&] {
    if (!std::exchange(streams, true)) exchange.begin_stream(header, dialect.stream_type());
  };
  const auto send = [&](const std::string& bytes) {
    return bytes.empty() || exchange.chunk(bytes);
  };
  for (;;) {
    const auto pieces = next();
    if (pieces.empty()) return "cancelled";
    for (const Piece& piece : pieces) {
      bool there = true;
      // Ollama passes on nothing but the answer.
      const bool is_passed_on = build != ServerBuild::ollama || piece.kind == PieceKind::token ||
                                piece.kind >= PieceKind::done;
      if (!is_passed_on) continue;
      switch (piece.kind) {
        case PieceKind::head:
          begin();
          break;
        case PieceKind::progress:
          there = send(dialect.progress(piece));
          break;
        case PieceKind::ping:
          there = send(dialect.ping());
          break;
        case PieceKind::token: {
          begin();
          const auto& token = answer.tokens.at(static_cast<std::size_t>(piece.written) - 1);
          there = send(dialect.token(token, std::exchange(is_first, false)));
          break;
        }
        case PieceKind::done:
          if (answer.stream) {
            begin();
            there = send(dialect.end(piece)) && exchange.write("0\r\n\r\n");
          } else {
            there = exchange.respond(200, dialect.whole(piece), "application/json; charset=utf-8",
                                     header);
          }
          return there ? "answered" : "cancelled";
        case PieceKind::error:
          if (streams) {
            send(dialect.error_in_stream(piece));
            exchange.write("0\r\n\r\n");
          } else {
            exchange.respond(piece.status, dialect.error(piece), "application/json; charset=utf-8",
                             header);
          }
          return "answered";
        case PieceKind::cut:
          if (streams) exchange.write("0\r\n\r\n");
          if (!streams) exchange.close();
          return "lost";
        case PieceKind::lost:
        case PieceKind::refused:
          exchange.reset();
          return "lost";
      }
      // A write that fails is a client that has gone: the next look at it cancels the request.
      if (!there) exchange.close();
    }
  }
}

void ModelBackend::serve_feed(Exchange& exchange) {
  const auto gone = [&] { return exchange.is_gone(); };
  SimulatedRequest wanted;
  try {
    wanted = request_from(exchange.request().body);
  } catch (const json::exception&) {
    exchange.respond(400, "{}");
    return;
  }
  exchange.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
  if (live_->wait_loaded(gone)) {
    const auto id = live_->submit(wanted);
    for (bool over = false; !over;) {
      const auto pieces = live_->wait_pieces(id, gone);
      if (pieces.empty()) break;
      for (const Piece& piece : pieces) {
        over = piece.kind >= PieceKind::done;
        exchange.write(line_of(piece));
      }
    }
  }
  exchange.close();
}

}  // namespace watchdog::test
