"""Text models: a recurrent classifier and a sentence embedder."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class LstmClassifier(nn.Module):
    def __init__(self, vocab=20000, d=256, h=256, classes=5):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.LSTM(d, h, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(4 * h, classes)

    def forward(self, tokens):
        y, _ = self.rnn(self.emb(tokens))
        return self.fc(torch.cat([y.mean(1), y.max(1).values], -1)).log_softmax(-1)


class SentenceEmbedder(nn.Module):
    """all-MiniLM-L6-v2 with its mean pooling and normalisation in the graph."""

    def __init__(self, path):
        super().__init__()
        from transformers import BertModel

        self.bert = BertModel.from_pretrained(path, attn_implementation="eager")

    def forward(self, input_ids, attention_mask, token_type_ids):
        h = self.bert(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        m = attention_mask[:, :, None].float()
        return h, F.normalize((h * m).sum(1) / m.sum(1).clamp(min=1e-9), dim=-1)
