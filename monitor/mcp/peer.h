/// \file
/// One client of the MCP server: messages in, messages out.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "mcp/exchange.h"
#include "mcp/loop.h"
#include "mcp/person_questions.h"
#include "mcp/resource_watch.h"
#include "mcp/rpc.h"
#include "mcp/source.h"
#include "mcp/task_book.h"

namespace watchdog::monitor::mcp {

/// The surroundings of a request: its way back to the client, and its own session. A plain value.
struct RequestContext {
  bool can_ask = true;        ///< Requests of the server reach the client before the answer.
  std::string own_session{};  ///< Of reports that name none; empty: that of the desk.
};

/// The parts of a server that all its clients share. They must not outlive it.
struct ServerContext {
  Loop& loop;
  std::string version{};      ///< Of this program.
  std::string own_session{};  ///< Of reports that name none; empty: each must.
  TaskBook tasks{loop};
};

/// A connection over stdio, a session over HTTP, or one request without a session. Of a loop's
/// steps alone. close() must be called before it goes.
class Peer : public std::enable_shared_from_this<Peer> {
 public:
  /// Requests at once. Beyond: an error.
  static constexpr std::size_t requests_max = 64;
  /// Between two notifications of progress while nothing changes.
  static constexpr Millis progress_every{15'000};
  /// After this time without progress a wait answers that it goes on.
  static constexpr Millis quiet_max{45'000};

  /// `send` gets what belongs to no request; empty: such messages are dropped.
  Peer(ServerContext& context, std::shared_ptr<Source> source,
       std::function<void(const json&)> send = {})
      : context_(context),
        source_(std::move(source)),
        send_(std::move(send)),
        questions_(std::make_shared<PersonQuestions>(context.loop)) {}

  /// Takes a message. `reply` gets the answer of a request, and before it what belongs to that
  /// request. `source`: asks with the permissions that came with this message. Returns the request,
  /// if it is one that is not answered yet.
  std::shared_ptr<Exchange> accept(const Message& message, std::shared_ptr<Source> source,
                                   Send reply, const RequestContext& context = {});
  /// The revision from now on, for clients whose `initialize` another peer has seen.
  void settle(Revision revision) { revision_ = revision; }
  [[nodiscard]] Revision revision() const noexcept { return revision_; }
  /// Where messages without a request go from now on.
  void send_to(std::function<void(const json&)> send) { send_ = std::move(send); }
  /// Ends the requests that wait for something to happen: no more messages will come.
  void end_waits();
  /// True if all requests are answered.
  [[nodiscard]] bool is_idle();
  /// Ends all requests and subscriptions.
  void close();

 private:
  using Handler = void (Peer::*)(const ExchangePtr&);
  struct Method;
  static const Method methods[];

  void notice(const Message& message);
  [[nodiscard]] bool declare(const ExchangePtr& exchange, const RequestContext& context);
  void dispatch(const ExchangePtr& exchange, const std::string& method);

  void initialize(const ExchangePtr& exchange);
  void discover(const ExchangePtr& exchange);
  void ping(const ExchangePtr& exchange);
  void list_tools(const ExchangePtr& exchange);
  void call(const ExchangePtr& exchange);
  void list_resources(const ExchangePtr& exchange);
  void list_templates(const ExchangePtr& exchange);
  void read_resource(const ExchangePtr& exchange);
  void subscribe(const ExchangePtr& exchange);
  void unsubscribe(const ExchangePtr& exchange);
  void listen(const ExchangePtr& exchange);
  template <void (*answer)(TaskBook&, const ExchangePtr&)>
  void ask_tasks(const ExchangePtr& exchange) {
    answer(context_.tasks, exchange);
  }

  void wait(const ExchangePtr& exchange, const json& arguments);
  void keep_alive(const std::weak_ptr<Exchange>& exchange, const std::weak_ptr<Waiting>& waiting,
                  Millis quiet);

  ServerContext& context_;
  const std::shared_ptr<Source> source_;
  std::function<void(const json&)> send_;
  Revision revision_ = Revision::v2025_11_25;
  bool can_elicit_ = false;  ///< As `initialize` said.
  std::map<std::string, ExchangePtr> under_way_;
  const std::shared_ptr<PersonQuestions> questions_;
  std::shared_ptr<ResourceWatch> watch_;
};

/// The names of what a request of 2026-07-28 says about its client.
inline constexpr const char* meta_version = "io.modelcontextprotocol/protocolVersion";
inline constexpr const char* meta_capabilities = "io.modelcontextprotocol/clientCapabilities";
inline constexpr const char* meta_subscription = "io.modelcontextprotocol/subscriptionId";
inline constexpr const char* tasks_extension = "io.modelcontextprotocol/tasks";

}  // namespace watchdog::monitor::mcp
