# frozen_string_literal: true

# A small web shop. A request enqueues the payment, which is retried while the bank is busy. A day
# later, the customer gets an e-mail.
#
# It needs a broker and Millrace (`make up`), and the gem webrick. Web server and worker are one
# program, because the orders are in memory instead of a database:
#
#     ruby shop.rb                                                          # on port 8000
#     curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
#     curl http://127.0.0.1:8000/orders/1                                   # its state

require 'json'
require 'webrick'
require 'millrace'

A_DAY = 24 * 3600

# Raised when the bank takes no payments at the moment.
class BankBusy < StandardError; end

# Stands for a table of a database.
class Orders
  Order = Struct.new(:email, :paid, :mailed)

  def initialize
    @all = []
    @mutex = Mutex.new
  end

  # Adds an order, and returns its number.
  def add(email)
    @mutex.synchronize { @all.push(Order.new(email, false, false)).size }
  end

  # Yields an order to read or change it. Returns nil if there is none.
  def find(number)
    @mutex.synchronize { yield @all[number - 1] if number.between?(1, @all.size) }
  end
end

ORDERS = Orders.new

# Pays an order. A job may run twice, so it first checks whether the order is paid.
class Charge
  include Millrace::Handler
  millrace_options queue: 'payments', retry: 10, timeout: 30
  # A short wait while the bank is busy. The usual backoff for other errors.
  millrace_retry_in { |count, error, _job| [2**count, 600].min if error.is_a?(BankBusy) }

  def perform(number)
    return if ORDERS.find(number, &:paid)

    ask_bank(number)
    AskForReview.perform_in(A_DAY, number)
    ORDERS.find(number) { |order| order.paid = true }
    Millrace.logger.info("order #{number} is paid")
  end

  private

  # Stands for a bank that is busy at first. A real bank gets the order's number, so that it takes
  # each payment once.
  def ask_bank(number)
    raise BankBusy, "order #{number}: try again later" if job.attempt == 1
  end
end

# Sends the e-mail that asks for a review. It marks the order first, because no e-mail is better
# than two.
class AskForReview
  include Millrace::Handler
  millrace_options queue: 'mail', retry: 5

  def perform(number)
    to = ORDERS.find(number) do |order|
      next if order.mailed

      order.mailed = true
      order.email
    end
    Millrace.logger.info("e-mail to #{to} about order #{number}") if to
  end
end

# Handles the web server's requests: POST /orders and GET /orders/{number}.
class Web < WEBrick::HTTPServlet::AbstractServlet
  # Takes an order.
  def do_POST(request, response) # rubocop:disable Naming/MethodName -- webrick calls it so
    email = email_in(request.body) or return answer(response, 400, error: 'the body must be JSON with an "email"')
    number = ORDERS.add(email)
    Charge.perform_async(number) # after the order is stored, so that the worker finds it
    answer(response, 202, order: number)
  rescue Millrace::Error => e
    # A real shop enqueues such orders later.
    Millrace.logger.error("order #{number} waits for its payment: #{e.message}")
    answer(response, 503, order: number, error: 'we cannot take payments at the moment')
  end

  # Shows an order.
  def do_GET(request, response) # rubocop:disable Naming/MethodName
    number = request.path.delete_prefix('/orders/')
    found = ORDERS.find(number.to_i) { |order| { paid: order.paid, mailed: order.mailed } }
    found ? answer(response, 200, **found) : answer(response, 404, error: "there is no order #{number}")
  end

  private

  def email_in(body)
    found = JSON.parse(body.to_s)
    found['email'] if found.is_a?(Hash)
  rescue JSON::ParserError
    nil
  end

  def answer(response, status, **body)
    response.status = status
    response.content_type = 'application/json'
    response.body = JSON.generate(body)
  end
end

# A request waits at most 2 seconds for the broker.
Millrace.client = Millrace::Client.new(Millrace.url, timeout: 2)
worker = Millrace::Worker.new(Millrace.url, queues: %w[payments mail], concurrency: 5)
server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: ENV.fetch('SHOP_PORT', '8000').to_i, AccessLog: [])
server.mount('/orders', Web)
serving = Thread.new { server.start }
worker.run(signals: true) # until SIGTERM
server.shutdown
serving.join
