# frozen_string_literal: true

# A small web shop: a request enqueues the payment, which is retried while the bank is busy, and a day later the customer gets an e-mail.
#
# It needs a broker and Millrace (`make up`), and the gem webrick. Web server and worker are one program, because the orders are in
# memory in place of a database:
#
#     ruby shop.rb                                                          # on port 8000
#     curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
#     curl http://127.0.0.1:8000/orders/1                                   # what became of it

require 'json'
require 'webrick'
require 'millrace'

A_DAY = 24 * 3600

# The bank takes no payments at the moment.
class BankBusy < StandardError; end

# Stands in for a table of a database.
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

  # Yields an order to read or change it; nil if there is none.
  def find(number)
    @mutex.synchronize { yield @all[number - 1] if number.between?(1, @all.size) }
  end
end

ORDERS = Orders.new

# Has an order paid. A job may run twice, so it looks first whether the order is paid.
class Charge
  include Millrace::Handler
  millrace_options queue: 'payments', retry: 10, timeout: 30
  # Soon again while the bank is busy; after another error, with the usual backoff.
  millrace_retry_in { |count, error, _job| [2**count, 600].min if error.is_a?(BankBusy) }

  def perform(number)
    return if ORDERS.find(number, &:paid)

    ask_bank(number)
    AskForReview.perform_in(A_DAY, number)
    ORDERS.find(number) { |order| order.paid = true }
    Millrace.logger.info("order #{number} is paid")
  end

  private

  # Stands in for a bank that is busy at first. A real one gets the order's number, so that it takes each payment once.
  def ask_bank(number)
    raise BankBusy, "order #{number}: try again later" if job.attempt == 1
  end
end

# Sends the e-mail that asks how the customer liked it. It is noted first: rather none than two.
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

# The web server's requests: POST /orders and GET /orders/{number}.
class Web < WEBrick::HTTPServlet::AbstractServlet
  # Takes an order.
  def do_POST(request, response) # rubocop:disable Naming/MethodName -- webrick calls it so
    email = email_in(request.body) or return answer(response, 400, error: 'the body must be JSON with an "email"')
    number = ORDERS.add(email)
    Charge.perform_async(number) # the order is there: the worker must find it
    answer(response, 202, order: number)
  rescue Millrace::Error => e
    Millrace.logger.error("order #{number} waits for its payment: #{e.message}") # a real shop enqueues such orders later
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

Millrace.client = Millrace::Client.new(Millrace.url, timeout: 2) # a request does not wait longer than 2 seconds for the broker
worker = Millrace::Worker.new(Millrace.url, queues: %w[payments mail], concurrency: 5)
server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: ENV.fetch('SHOP_PORT', '8000').to_i, AccessLog: [])
server.mount('/orders', Web)
serving = Thread.new { server.start }
worker.run(signals: true) # until SIGTERM
server.shutdown
serving.join
