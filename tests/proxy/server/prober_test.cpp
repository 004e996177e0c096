// Looks at a model's server while requests are open there, over real sockets.

#include "proxy/server/prober.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>

#include "process/process_sample.h"
#include "support/model_replies.h"
#include "support/model_server.h"
#include "support/silent_process.h"

namespace watchdog::monitor {
namespace {

using test::ModelServer;
using Exchange = ModelServer::Exchange;
using test::SilentProcess;

Url url_of(const ModelServer& server) {
  auto url = url_from(server.base_url());
  url->path.clear();
  return *url;
}

/// A prober with everything that it published.
class Watched {
 public:
  explicit Watched(const Url& server, std::string key = {}, HangThresholds limits = {},
                   Millis look_every = Millis{8}, Millis slots_apart = Millis{8}) {
    auto prober = Prober::start({.server = server,
                                 .api_key = std::move(key),
                                 .look_every = look_every,
                                 .slots_apart = slots_apart,
                                 .limits = limits},
                                [this](const ServerFinding& finding) {
                                  const std::lock_guard guard(mutex_);
                                  reported_.push_back(finding);
                                  changed_.notify_all();
                                });
    EXPECT_TRUE(prober.ok());
    prober_ = std::move(*prober);
  }
  Prober& operator*() { return *prober_; }
  Prober* operator->() { return prober_.get(); }

  /// The first one that was published; waits for it.
  ServerFinding until(ServerState state, RequestId request = 1) {
    std::unique_lock lock(mutex_);
    std::size_t at = 0;
    for (;; ++at) {
      changed_.wait(lock, [&] { return at < reported_.size(); });
      if (reported_[at].request == request && reported_[at].evidence.state == state)
        return reported_[at];
    }
  }
  void stop() { prober_.reset(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ServerFinding> reported_;
  std::unique_ptr<Prober> prober_;
};

/// Counts what is asked, and lets a test wait for it.
class Asks {
 public:
  void note(const std::string& path) {
    const std::lock_guard guard(mutex_);
    ++count_[path];
    changed_.notify_all();
  }
  int of(const std::string& path) {
    const std::lock_guard guard(mutex_);
    return count_[path];
  }
  void wait_for(const std::string& path, int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_[path] >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> count_;
};

std::string reading_slot(int read) {
  return R"([{"id":0,"is_processing":true,"id_task":7,"n_prompt_tokens_processed":)" +
         std::to_string(read) + R"(,"next_token":[{"n_decoded":0}]}])";
}

TEST(Prober, llama_cpp_is_found_at_once_and_its_slots_report) {
  Asks asks;
  std::atomic<int> read = 0;
  const ModelServer server([&](Exchange& exchange) {
    asks.note(exchange.request().target);
    if (exchange.request().target == "/slots")
      return (void)exchange.respond(200, reading_slot(read += 512));
    test::be_llama(exchange);
  });
  Watched watched(url_of(server));
  asks.wait_for("/props", 1);
  watched->opened(1);
  const auto finding = watched.until(ServerState::reading);
  EXPECT_TRUE(watched->shows_progress());
  EXPECT_GT(finding.evidence.done, 0);
  asks.wait_for("/slots", 5);
  EXPECT_EQ(asks.of("/metrics"), 0) << "scraping would take others' figures away";
}

TEST(Prober, nothing_is_asked_while_no_request_is_open) {
  Asks asks;
  const ModelServer server([&](Exchange& exchange) {
    asks.note(exchange.request().target);
    test::be_vllm(exchange);
  });
  Asks clock;  // ticks with the looks of another one
  const ModelServer elsewhere([&](Exchange& exchange) {
    clock.note(exchange.request().target);
    test::be_vllm(exchange);
  });
  Watched ticking(url_of(elsewhere));
  ticking->opened(1);
  Watched watched(url_of(server));
  asks.wait_for("/version", 1);
  clock.wait_for("/health", 5);
  EXPECT_EQ(asks.of("/metrics") + asks.of("/health"), 0) << "none was open yet";
  watched->opened(1);
  asks.wait_for("/health", 2);
  watched->closed(1);
  const auto in_full_swing = asks.of("/health");
  clock.wait_for("/health", clock.of("/health") + 5);
  EXPECT_LE(asks.of("/health"), in_full_swing + 1) << "but one that was under way";
}

TEST(Prober, a_server_that_sleeps_is_not_asked_for_slots) {
  Asks asks;
  const ModelServer server([&](Exchange& exchange) {
    asks.note(exchange.request().target);
    exchange.respond(200,
                     exchange.request().target == "/props" ? test::llama_props(1, true) : "[]");
  });
  Watched watched(url_of(server));
  watched->opened(1);
  watched.until(ServerState::loading);
  asks.wait_for("/props", 6);
  EXPECT_EQ(asks.of("/slots"), 0);
}

TEST(Prober, slots_are_asked_once_at_a_time_and_the_end_waits_for_nothing) {
  Asks asks;
  const ModelServer server([&](Exchange& exchange) {
    asks.note(exchange.request().target);
    if (exchange.request().target == "/slots") return exchange.wait_gone();
    test::be_llama(exchange);
  });
  Watched watched(url_of(server));
  watched->opened(1);
  asks.wait_for("/props", 8);
  EXPECT_EQ(asks.of("/slots"), 1);
  watched.stop();
}

TEST(Prober, llama_cpp_is_not_asked_for_slots_so_often_that_it_misses_who_hangs_up) {
  Asks asks;
  const ModelServer server([&](Exchange& exchange) {
    asks.note(exchange.request().target);
    if (exchange.request().target == "/slots") return (void)exchange.respond(200, reading_slot(1));
    test::be_llama(exchange);
  });
  EXPECT_GE(Prober::Options{}.slots_apart, Millis{1'500});
  Watched watched(url_of(server), {}, {}, Millis{8}, Millis{3'600'000});
  watched->opened(1);
  asks.wait_for("/props", 8);
  EXPECT_EQ(asks.of("/slots"), 1) << "however often the server is looked at";
}

TEST(Prober, slots_unanswered_by_an_idle_process_are_a_hang) {
  const ModelServer server([&](Exchange& exchange) {
    if (exchange.request().target == "/slots") return exchange.wait_gone();
    test::be_llama(exchange);
  });
  // This process is the server's, so what counts as idle is set.
  Watched watched(url_of(server), {},
                  {.gap_prior = Millis{50}, .gap_factor = 1, .cpu_idle = 1'000});
  watched->opened(1);
  const auto finding = watched.until(ServerState::hung);
  EXPECT_NE(finding.why.find("/slots is unanswered"), std::string::npos) << finding.why;
}

TEST(Prober, a_process_that_is_stopped_is_a_fact_at_the_first_look) {
  const SilentProcess server;
  kill(server.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(server.pid(), &status, WUNTRACED), server.pid());
  Watched watched(server.url());
  watched->opened(1);
  const auto finding = watched.until(ServerState::hung);
  EXPECT_EQ(finding.why,
            "the server's process is stopped (state T): continue it with \"kill -CONT " +
                std::to_string(server.pid()) + "\"");
  kill(server.pid(), SIGCONT);
  watched.until(ServerState::quiet);
}

TEST(Prober, a_server_that_answers_nothing_is_looked_at_without_a_pause) {
  const SilentProcess server;
  // If each of eight looks asked, and paused after that, they would take three minutes.
  Watched watched(server.url(), {}, {.gap_prior = Millis{50}, .gap_factor = 1}, Millis{200});
  const auto began = system_clock().since_boot();
  watched->opened(1);
  const auto finding = watched.until(ServerState::hung);
  EXPECT_LT(system_clock().since_boot() - began, Millis{60'000});
  EXPECT_NE(finding.why.find("its process has done nothing"), std::string::npos) << finding.why;
}

// Under this sanitizer the memory of the test, which is the server, grows as if it loaded a model.
#ifndef WATCHDOG_SANITIZE_ADDRESS
TEST(Prober, a_piece_of_a_request_that_was_hung_is_looked_at_at_once) {
  // Its answers take so long that each look earns a pause of 5 s.
  const ModelServer server([&](Exchange& exchange) {
    if (exchange.request().target == "/slots") return exchange.wait_gone();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable().wait_for(lock, Millis{500}, [] { return false; });
    test::be_llama(exchange);
  });
  Watched watched(url_of(server), {},
                  {.looks_min = 1, .gap_prior = Millis{1}, .gap_factor = 1, .cpu_idle = 1'000});
  watched->opened(1);
  watched.until(ServerState::hung);
  const auto began = system_clock().since_boot();
  watched->moved(1, {.pieces = 1});
  watched.until(ServerState::writing);
  EXPECT_LT(system_clock().since_boot() - began, Millis{4'000});
}
#endif

TEST(Prober, a_swallowed_request_is_found_by_idle_slots) {
  Asks asks;
  const ModelServer server([&](Exchange& exchange) {
    asks.note(exchange.request().target);
    if (exchange.request().target == "/slots")
      return (void)exchange.respond(200, "[" + test::llama_slot(0, false, 3) + "]");
    test::be_llama(exchange);
  });
  Watched watched(url_of(server), {}, {.gap_prior = Millis{50}, .remote_factor = 1});
  watched->opened(1);
  const auto finding = watched.until(ServerState::hung);
  EXPECT_NE(finding.why.find("no slot works on it"), std::string::npos) << finding.why;
  EXPECT_GE(asks.of("/metrics"), 1) << "whether anything is queued is told nowhere else";
}

TEST(Prober, ollama_is_looked_at_by_the_server_that_it_started) {
  std::atomic<int> read = 0;
  const ModelServer child([&](Exchange& exchange) {
    exchange.request().target == "/slots" ? exchange.respond(200, reading_slot(read += 64))
                                          : exchange.respond(500, "{}");
  });
  const ModelServer server([](Exchange& exchange) {
    exchange.request().target == "/api/ps" ? (void)exchange.respond(200, R"({"models":[]})")
                                           : test::be_ollama(exchange);
  });
  // Below this process, and with the command line that Ollama gives it.
  std::array<int, 2> input{};
  ASSERT_EQ(pipe2(input.data(), O_CLOEXEC), 0);
  const auto port = url_of(child).port;
  std::array<const char*, 7> arguments = {"llama-server", "-c",        "read x", "",
                                          "--port",       port.c_str()};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(input[0], 0);
    execv("/bin/sh", const_cast<char**>(arguments.data()));  // NOLINT: it does not write to them
    _exit(1);
  }
  close(input[0]);
  Watched watched(url_of(server));
  watched->opened(1);
  EXPECT_GT(watched.until(ServerState::reading).evidence.done, 0);
  watched.stop();
  close(input[1]);
  waitpid(pid, nullptr, 0);
}

TEST(Prober, vllm_is_asked_for_its_totals) {
  std::atomic<int> tokens = 1;
  const ModelServer server([&](Exchange& exchange) {
    if (exchange.request().target != "/metrics") return test::be_vllm(exchange);
    exchange.respond(200, "vllm:num_requests_running 1\nvllm:generation_tokens_total " +
                              std::to_string(tokens += 7) + "\n");
  });
  Watched watched(url_of(server));
  watched->opened(1);
  watched.until(ServerState::working);
  EXPECT_FALSE(watched->shows_progress());
}

TEST(Prober, a_server_that_loads_says_so) {
  const ModelServer server([](Exchange& exchange) {
    exchange.respond(503, test::llama_loading, "application/json", test::llama_header);
  });
  Watched watched(url_of(server));
  watched->opened(1);
  watched.until(ServerState::loading);
  EXPECT_TRUE(watched->shows_progress());
}

TEST(Prober, a_server_that_is_not_there_is_gone) {
  Url url;
  {
    const ModelServer server(test::be_ollama);
    url = url_of(server);
  }
  Watched watched(url);
  watched->opened(1);
  const auto finding = watched.until(ServerState::gone);
  EXPECT_NE(finding.why.find("accepts no connections"), std::string::npos) << finding.why;
}

TEST(Prober, streams_that_move_cost_no_question) {
  Asks asks;
  const ModelServer server([&](Exchange& exchange) {
    asks.note(exchange.request().target);
    test::be_unknown(exchange);
  });
  Watched watched(url_of(server));
  watched->opened(1);
  asks.wait_for("/v1/models", 1);
  watched->moved(1, {.pieces = 4});
  EXPECT_EQ(watched.until(ServerState::writing).evidence.done, 4);
}

TEST(Prober, the_key_is_sent_if_there_is_one) {
  for (const std::string key : {"", "sk-1"}) {
    Asks asks;
    const ModelServer server([&](Exchange& exchange) {
      asks.note(exchange.request().target);
      test::be_llama(exchange);
    });
    Watched watched(url_of(server), key);
    asks.wait_for("/props", 1);
    EXPECT_EQ(
        server.requests().front().head.find("Authorization: Bearer sk-1") != std::string::npos,
        !key.empty());
  }
  EXPECT_FALSE(Prober::start({.server = {}, .api_key = "a b"}, {}).ok());
}

TEST(ProcessSample, the_process_behind_a_port_is_found_with_what_it_uses) {
  const ModelServer server(test::be_unknown);
  const auto url = url_of(server);
  const auto process = process_behind(url);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, getpid());
  const auto use = use_of(*process);
  ASSERT_TRUE(use);
  EXPECT_GT(use->memory_bytes, 0);
  EXPECT_FALSE(use_of({.pid = process->pid, .start_ticks = process->start_ticks + 1}))
      << "another one has its number";
  EXPECT_FALSE(process_behind({.host = "192.0.2.1", .port = url.port})) << "not this machine's";
  EXPECT_FALSE(process_behind({.host = "127.0.0.1", .port = "1"}));
}

TEST(ProcessSample, a_gateway_is_not_taken_for_the_server_behind_it) {
  const ModelServer server(test::be_unknown);
  ASSERT_TRUE(process_behind(url_of(server)));
  std::array<char, 16> name{};
  prctl(PR_GET_NAME, name.data());
  prctl(PR_SET_NAME, "litellm");
  EXPECT_FALSE(process_behind(url_of(server)));
  prctl(PR_SET_NAME, name.data());
}

TEST(ProcessSample, of_those_that_share_a_socket_the_oldest_serves_whatever_its_number) {
  const auto holder = [](pid_t pid, std::int64_t start, pid_t parent) {
    return SocketHolder{{.pid = pid, .start_ticks = start}, parent};
  };
  EXPECT_FALSE(first_of({}));
  EXPECT_EQ(first_of({holder(902, 70, 32'000), holder(32'000, 60, 1)})->pid, 32'000)
      << "numbers began again in between";
  EXPECT_EQ(first_of({holder(902, 60, 32'000), holder(32'000, 60, 1)})->pid, 32'000)
      << "within one tick";
  EXPECT_EQ(first_of({holder(10, 60, 1), holder(11, 60, 10)})->pid, 10);
}

TEST(ProcessSample, the_busiest_gpu_counts) {
  EXPECT_EQ(gpu_percent_from("7\n 93\n0\n"), 93);
  EXPECT_EQ(gpu_percent_from("[N/A]\n"), std::nullopt);
  EXPECT_EQ(gpu_percent_from(""), std::nullopt);
  EXPECT_EQ(gpu_percent_from("4000"), 100);
}

}  // namespace
}  // namespace watchdog::monitor
