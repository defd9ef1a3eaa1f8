# Python worker example
def process_job(channel, method, properties, body):
    try:
        job = json.loads(body)
        # Execute job
        execute_job_class(job['class'], job['args'])
        channel.basic_ack(method.delivery_tag)
    except Exception as e:
        retry_count = job.get('retry_count', 0)
        max_retries = job.get('retry', 25)

        if retry_count < max_retries:
            # Calculate backoff
            backoff = (retry_count ** 4) + 15 + random.randint(0, 30 * (retry_count + 1))

            # Publish to retries stream
            retry_msg = {
                "type": "retry",
                "jid": job['jid'],
                "retry_at": time.time() + backoff,
                "retry_count": retry_count + 1,
                "failed_at": time.time(),
                "error_message": str(e),
                "error_class": e.__class__.__name__,
                "job": job
            }
            channel.basic_publish('', 'retries', json.dumps(retry_msg))
            channel.basic_ack(method.delivery_tag)
        else:
            # Move to dead jobs
            publish_to_dead_queue(channel, job, e)
            channel.basic_ack(method.delivery_tag)
